package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"
)

func completionVerb() verb {
	return verb{
		name:      "completion",
		arguments: "bash | zsh | fish",
		words:     []string{"bash", "zsh", "fish"},
		summary:   "print the completion script of a shell",
		examples: []example{
			{"bash, for this session", "taintlet completion bash >taintlet.bash && source taintlet.bash"},
			{"zsh, where the folder is in $fpath", "taintlet completion zsh >~/.zfunc/_taintlet"},
			{"fish", "taintlet completion fish >~/.config/fish/completions/taintlet.fish"},
		},
		bind: func(*pflag.FlagSet) func(context.Context, call) error {
			return func(_ context.Context, c call) error {
				var script string
				switch shell := strings.Join(c.args, " "); shell {
				case "bash":
					script = bashCompletion(verbs())
				case "zsh":
					script = zshCompletion(verbs())
				case "fish":
					script = fishCompletion(verbs())
				default:
					return usageError{fmt.Errorf("shell %q: must be one of bash, zsh, fish", shell)}
				}
				_, err := io.WriteString(c.stdout, script)
				return err
			}
		},
	}
}

// flagWords returns the verb's flags as they are typed.
func (v verb) flagWords() []string {
	words := []string{"--help"}
	v.eachFlag(func(f *pflag.Flag) { words = append(words, "--"+f.Name) })
	return words
}

func (v verb) eachFlag(do func(*pflag.Flag)) {
	flags, _ := v.flags()
	flags.VisitAll(do)
}

// isPath reports whether the value of a flag is a path.
func isPath(f *pflag.Flag) bool {
	_, found := f.Annotations[isFile]
	return found
}

// firstWords are what may follow the program's name: verbs, and the agent's flags.
func firstWords(table []verb) []string {
	words := names(table)
	for _, v := range table {
		if v.name == "" {
			words = append(words, v.flagWords()...)
		}
	}
	return words
}

// bashCompletion completes verbs, their flags and arguments, and the values of
// flags. Bash splits words at =, so that --flag=value are three of them.
func bashCompletion(table []verb) string {
	var words, values strings.Builder
	for _, v := range table {
		if v.name != "" {
			fmt.Fprintf(&words, "    %s) words=%q ;;\n", v.name, strings.Join(append(v.words, v.flagWords()...), " "))
		}
	}
	seen := map[string]bool{}
	for _, v := range table {
		v.eachFlag(func(f *pflag.Flag) {
			line := ""
			switch choices := f.Annotations[choicesOf]; {
			case len(choices) > 0:
				line = fmt.Sprintf("    %s:--%s) words=%q ;;\n", v.name, f.Name, strings.Join(choices, " "))
			case isPath(f) && !seen[f.Name]:
				seen[f.Name] = true
				line = fmt.Sprintf("    *:--%s) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- \"$word\"); return ;;\n", f.Name)
			}
			values.WriteString(line)
		})
	}
	return fmt.Sprintf(bashTemplate, values.String(), strings.Join(firstWords(table), " "), words.String())
}

const bashTemplate = `# bash completion for taintlet
_taintlet() {
  local word="${COMP_WORDS[COMP_CWORD]}" flag="" verb="" words=""
  [ "$COMP_CWORD" -gt 1 ] && verb="${COMP_WORDS[1]}"
  case "$verb" in -*) verb="" ;; esac
  if [ "$word" = = ]; then
    word="" flag="${COMP_WORDS[COMP_CWORD-1]}"
  elif [ "$COMP_CWORD" -gt 1 ] && [ "${COMP_WORDS[COMP_CWORD-1]}" = = ]; then
    flag="${COMP_WORDS[COMP_CWORD-2]}"
  else
    flag="${COMP_WORDS[COMP_CWORD-1]}"
  fi
  case "$verb:$flag" in
%s  esac
  [ -z "$words" ] && case "$verb" in
    "") words=%q ;;
%s  esac
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}
complete -F _taintlet taintlet
`

// zshText is a text for use within single quotes, in which colons and brackets
// mean nothing to zsh.
func zshText(text string) string {
	return strings.NewReplacer("'", `'\''`, ":", `\:`, "[", "(", "]", ")").Replace(text)
}

// zshCompletion completes the same as bashCompletion, with descriptions.
func zshCompletion(table []verb) string {
	var first, cases strings.Builder
	agent := ""
	for _, v := range table {
		if v.name == "" {
			agent = zshArguments(v)
			continue
		}
		fmt.Fprintf(&first, "    '%s:%s'\n", v.name, zshText(v.summary))
		fmt.Fprintf(&cases, "    %s)\n%s      ;;\n", v.name, zshArguments(v))
	}
	return fmt.Sprintf(zshTemplate, first.String(), cases.String(), agent)
}

// zshArguments is the call of _arguments for a verb.
func zshArguments(v verb) string {
	lines := []string{"      _arguments", "'--help[show the flags and examples]'"}
	v.eachFlag(func(f *pflag.Flag) {
		placeholder, usage := pflag.UnquoteUsage(f)
		line := "--" + f.Name
		value := ""
		switch choices := f.Annotations[choicesOf]; {
		case len(choices) > 0:
			line, value = line+"=", ":value:("+strings.Join(choices, " ")+")"
		case isPath(f):
			line, value = line+"=", ":path:_files"
		case f.Value.Type() != "bool":
			line, value = line+"=", ":"+placeholder+":"
		}
		lines = append(lines, "'"+line+"["+zshText(usage)+"]"+value+"'")
	})
	if len(v.words) > 0 {
		lines = append(lines, "'*:argument:("+strings.Join(v.words, " ")+")'")
	}
	return strings.Join(lines, " \\\n        ") + "\n"
}

const zshTemplate = `#compdef taintlet
# zsh completion for taintlet
_taintlet() {
  local -a verbs
  verbs=(
%s  )
  if (( CURRENT == 2 )) && [[ ${words[2]} != -* ]]; then
    _describe verb verbs
    return
  fi
  local verb=${words[2]}
  if [[ $verb != -* ]]; then
    shift words
    (( CURRENT-- ))
  fi
  case $verb in
%s    *)
%s      ;;
  esac
}
if [ "$funcstack[1]" = _taintlet ]; then
  _taintlet "$@"
else
  compdef _taintlet taintlet
fi
`

// fishCompletion completes the same, with descriptions.
func fishCompletion(table []verb) string {
	var script strings.Builder
	script.WriteString("# fish completion for taintlet\ncomplete -c taintlet -f\n")
	all := strings.Join(names(table), " ")
	escape := func(text string) string { return "'" + strings.ReplaceAll(text, "'", `\'`) + "'" }
	for _, v := range table {
		when := "'not __fish_seen_subcommand_from " + all + "'"
		if v.name != "" {
			fmt.Fprintf(&script, "complete -c taintlet -n %s -a %s -d %s\n", when, v.name, escape(v.summary))
			when = "'__fish_seen_subcommand_from " + v.name + "'"
		}
		for _, word := range v.words {
			fmt.Fprintf(&script, "complete -c taintlet -n %s -a %s\n", when, word)
		}
		v.eachFlag(func(f *pflag.Flag) {
			_, usage := pflag.UnquoteUsage(f)
			value := ""
			switch choices := f.Annotations[choicesOf]; {
			case len(choices) > 0:
				value = " -x -a " + escape(strings.Join(choices, " "))
			case isPath(f):
				value = " -r -F"
			case f.Value.Type() != "bool":
				value = " -x"
			}
			fmt.Fprintf(&script, "complete -c taintlet -n %s -l %s%s -d %s\n", when, f.Name, value, escape(usage))
		})
	}
	return script.String()
}
