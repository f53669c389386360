# Made from the flags of ttmond: make update
_ttmond() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
	# --flag=value is three words.
	if [ "$cur" = = ]; then cur=; elif [ "$prev" = = ]; then prev=${COMP_WORDS[COMP_CWORD - 2]}; fi
	case $prev in
	--alloc-socket) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
	--config) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
	--firmware) mapfile -t COMPREPLY < <(compgen -W 'off table full' -- "$cur") ;;
	--root) mapfile -t COMPREPLY < <(compgen -d -- "$cur") ;;
	--socket) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
	--state-dir) mapfile -t COMPREPLY < <(compgen -d -- "$cur") ;;
	*) mapfile -t COMPREPLY < <(compgen -W '--alloc-socket --check-config --config --firmware --help -h --no-uprobe --quiet -q --reload --root --socket --state-dir --unopened --uprobe-waits --verbose -v --version' -- "$cur") ;;
	esac
}
complete -o filenames -F _ttmond ttmond
