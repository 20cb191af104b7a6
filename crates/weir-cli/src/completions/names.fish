# Names that only this machine knows.
function __weir_interfaces
    __fish_seen_subcommand_from capture count; or __weir_options_alone; and echo any
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
# Options without a command belong to `weir capture`, or to `weir read` after -r.
function __weir_options_alone
    set -l words (commandline -opc)
    string match -q -- '-?*' $words[2]
end
complete -c weir -n __weir_options_alone -s i -l interface -x -a "(__weir_interfaces)"
complete -c weir -n __weir_options_alone -s r -r -F
