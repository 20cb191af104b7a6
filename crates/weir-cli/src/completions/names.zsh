# Names that only this machine knows.
_weir_interfaces() {
    local -a names=(/sys/class/net/*(N-/:t))
    [[ $words[1] == (capture|count) ]] && names+=(any)
    compadd "$@" -- $names
}
# Options without a command belong to `weir capture`, or to `weir read` after -r.
_weir_options_alone() {
    (( CURRENT > 2 )) && [[ $words[2] == -?* ]] || return 0
    local command=capture
    [[ $words[2] == -r* ]] && command=read
    words=("$words[1]" $command "${(@)words[2,-1]}")
    (( CURRENT++ ))
    # Both keep their values when this function returns.
    compstate[restore]=''
}
_weir_namespaces() {
    local -a names=(/run/netns/*(N:t))
    compadd "$@" -- $names
}
_weir_captures() {
    local -a names=(${${(f)"$(weir ctl list 2>/dev/null)"}%% *})
    compadd "$@" -- $names
}

