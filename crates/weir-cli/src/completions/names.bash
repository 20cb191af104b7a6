
# Names that only this machine knows. Everything else is completed by _weir.
_weir_names() {
    local command=${COMP_WORDS[1]} word=$2 before=$3 path name quoted names=()
    # Options without a command belong to `weir capture`, or to `weir read` after -r.
    if [[ $COMP_CWORD -gt 1 && $command == -?* ]]; then
        [[ $command == -r* ]] && command=read || command=capture
        local -a COMP_WORDS=("${COMP_WORDS[0]}" "$command" "${COMP_WORDS[@]:1}")
        local COMP_CWORD=$((COMP_CWORD + 1))
    fi
    [[ $word == -* ]] && before=
    # The second interface of two; a filter comes behind it.
    [[ $command == forward && $COMP_CWORD == 3 && $before == [!-]* ]] && before=forward
    case "$command $before" in
        'ctl -t' | 'ctl --target')
            while read -r path _; do names+=("$path"); done < <(weir ctl list 2>/dev/null)
            ;;
        *' --netns')
            for path in /run/netns/*; do [[ -e $path ]] && names+=("${path##*/}"); done
            ;;
        'capture -i' | 'capture --interface' | 'count -i' | 'count --interface' | 'stat -i' | 'stat --interface' | \
            'doctor -i' | 'doctor --interface' | 'replay -i' | 'replay --interface' | 'replay --second' | 'gen -i' | 'gen --interface' | \
            'devices '[!-]* | 'forward forward')
            for path in /sys/class/net/*/; do path=${path%/} && names+=("${path##*/}"); done
            [[ $command == capture || $command == count ]] && names+=(any)
            ;;
        *)
            _weir "$@"
            return
            ;;
    esac
    # No files, even if nothing matches.
    compopt +o default +o bashdefault 2>/dev/null
    # Names are data: whoever may create an interface chooses its name, so nothing here expands one (compgen -W would).
    COMPREPLY=()
    for name in "${names[@]}"; do
        printf -v quoted %q "$name"
        [[ $name == "$word"* || $quoted == "$word"* ]] && COMPREPLY+=("$quoted")
    done
}
complete -F _weir_names -o bashdefault -o default weir
