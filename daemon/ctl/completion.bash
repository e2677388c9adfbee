# SPDX-License-Identifier: Apache-2.0
# Completion of sluicectl for bash: it asks sluicectl --help for the commands and their options.

# The words that a command takes, such as list, show and retry: what its usage line has in lower case.
_sluicectl_words()
{
    local usage
    usage=$(sed -n "1s/.* $1 //p" <<<"$2" | tr -d '[]')
    tr ' ' '\n' <<<"$usage" | grep -xE '[a-z][a-z-]+' | sort -u | tr '\n' ' ' | sed 's/ $//'
}

_sluicectl()
{
    local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} command= own i help
    COMPREPLY=()
    case $previous in
        --config | --file | --items | --queries | --model | --output | --attributes | --keys | --resume | --plot)
            mapfile -t COMPREPLY < <(compgen -f -- "$word")
            return
            ;;
    esac
    for ((i = 1; i < COMP_CWORD; i++)); do
        case ${COMP_WORDS[i]} in
            --config) ((i++)) ;;
            -*) ;;
            *) command=${COMP_WORDS[i]} && break ;;
        esac
    done
    help=$("${COMP_WORDS[0]}" $command --help 2>/dev/null)
    if [[ $word == -* ]]; then
        help="$help --config --verbose --help"
        mapfile -t COMPREPLY < <(compgen -W "$(grep -oE -- '--[a-z][a-z-]+' <<<"$help" | sort -u)" -- "$word")
    elif [[ -z $command ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$(sed -n '/^  --/q; s/^  \([a-z][a-z-]*\).*/\1/p' <<<"$help")" -- "$word")
    elif own=$(_sluicectl_words "$command" "$help") && [[ -n $own ]]; then
        [[ " ${COMP_WORDS[*]:i + 1:COMP_CWORD - i - 1} " =~ \ (${own// /|})\  ]] ||
            mapfile -t COMPREPLY < <(compgen -W "$own" -- "$word")
    else
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
    fi
} && complete -o filenames -F _sluicectl sluicectl
