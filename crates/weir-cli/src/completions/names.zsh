# Names that only this machine knows.
_weir_interfaces() {
    local -a names=(/sys/class/net/*(N-/:t))
    [[ $words[1] == (capture|count) ]] && names+=(any)
    compadd "$@" -- $names
}
_weir_namespaces() {
    local -a names=(/run/netns/*(N:t))
    compadd "$@" -- $names
}
_weir_captures() {
    local -a names=(${${(f)"$(weir ctl list 2>/dev/null)"}%% *})
    compadd "$@" -- $names
}

