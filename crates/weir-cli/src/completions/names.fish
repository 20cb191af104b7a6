# Names that only this machine knows.
function __weir_interfaces
    __fish_seen_subcommand_from capture count; and echo any
    for path in /sys/class/net/*/
        path basename $path
    end
end
function __weir_namespaces
    for path in /run/netns/*
        path basename $path
    end
end
function __weir_captures
    weir ctl list 2>/dev/null | string replace -r ' .*' ''
end
complete -c weir -n "__fish_seen_subcommand_from devices forward" -f -a "(__weir_interfaces)"
