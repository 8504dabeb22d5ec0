# fish completion for chat and the hist-* programs. The other names in this folder are links to this file; under
# its name fish finds it, and by its name it knows which program is meant.
#
# The options are not listed here: a program tells its own, with what each of them takes and its help
# (PROGRAM --completion-table). What comes from a history or from a server is data: it is compared,
# quoted and printed, never evaluated.

# Makes `word TAB …` lines safe to offer: prints `word TAB`, with a field's number `word TAB field`. A word with a
# character that a terminal could obey is left out, in the field it becomes `?`: C0 and C1 controls, bidi and
# other format controls, tags. Of more than a second number of lines the others become one that is empty.
function __chathist_safe
    set -l field 0
    set -l most 0
    set -q argv[1]; and set field $argv[1]
    set -q argv[2]; and set most $argv[2]
    LC_ALL=C awk -F '\t' -v field=$field -v most=$most '
        function mask(s) {
            gsub(/[\001-\037\177]|\302[\200-\237]|\330\234|\342\200[\216\217\250-\256]/, "?", s)
            gsub(/\342\201[\246-\251]|\357\273\277|\357\277[\271-\273]|\363\240[\200\201]./, "?", s)
            return s
        }
        most && NR > most { print ""; exit }
        $1 != "" && mask($1) == $1 { print $1 "\t" (field ? mask($field) : "") }'
end

# Prints words that have no description of their own. Without the tab fish would repeat that of the option.
function __chathist_words
    printf '%s\t\n' $argv
end

# The same for several of them, separated by commas.
function __chathist_list
    set -l before (commandline -ct | string replace -r '^--[^=]*=' '' | string match -r '^.*,')
    set -q before[1]; or set before ''
    __chathist_words $before$argv
end

# The program called NAME that lies beside the one on the line.
function __chathist_program
    set -l typed (commandline -opc)[1]
    set -l directory (string match -r '^.*/' -- $typed | string replace -r '^~/' $HOME/)
    if test -n "$directory" -a -x "$directory$argv[1]"
        echo $directory$argv[1]
    else
        echo $argv[1]
    end
end

# What was given on the line for the long option $argv[1], an abbreviation of it, or the letter $argv[2]: two
# lines, the option and its value. Fails when the shell would have to run something to know the value.
function __chathist_given
    set -l words (commandline -opc)[2..]
    set -l option $argv[1]
    set -l letter $argv[2]
    set -l value
    set -l next 0
    for word in $words
        set -l name (string split -m 1 = -- $word)[1]
        set -l length (string length -- $name)
        if test $next = 1
            set value $word
            set next 0
        else if test "$word" = --
            break
        else if test $length -gt 3; and test (string sub -l $length -- $option) = "$name"
            if test "$name" = "$word"
                set next 1
            else
                set value (string replace -- "$name=" '' $word)
            end
        else if test -n "$letter"; and string match -q -- "$letter*" $word
            if test "$word" = "$letter"
                set next 1
            else
                set value (string sub -s 3 -- $word)
            end
        end
    end
    set -q value[1]; or return 0
    string match -qr '[$(]' -- $value; and return 1
    printf '%s\n' $option (string replace -r '^~/' $HOME/ -- $value)
end

# An ID is taken literally and must be one; a SESSION is any in the history, or one of two words. Those used
# last that the text could mean are offered; that there are more is a candidate, too, so that what all of
# the others have in common is not taken for the beginning of every id.
function __chathist_sessions
    set -l given (__chathist_given --history); or return
    set -l typed (commandline -ct | string replace -r '^(--[^=]*=|-[^-])' '')
    string match -qr '[$(]' -- $typed; and return
    set typed (string unescape -- "$typed")
    test "$argv[1]" = ID; or printf '%s\t%s\n' current 'the current session' last 'the session used last'
    # An id in quotes would not read back from a line, one with a dash would be an option.
    set -l valid '^[^"-]'
    test "$argv[1]" = ID; and set valid '^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}\t'
    set -l program (__chathist_program hist-sessions)
    set -l lines ($program --limit 51 --id "$typed" $given </dev/null 2>/dev/null | __chathist_safe 4 50)
    string match -r "$valid.*" -- $lines
    if test (count $lines) -gt 1 -a -z "$lines[-1]"
        and string match -qr -- '^'(string escape --style=regex -- "$typed") $lines[-2]
        printf '%s\t%s\n' "$typed..." 'more sessions: type more of an id'
    end
end

# What a query can be completed to.
function __chathist_query
    set -l given (__chathist_given --history); or return
    set -l typed (commandline -ct | string replace -r '^(--[^=]*=|-[^-])' '')
    string match -qr '[$(]' -- $typed; and return
    set -l program (__chathist_program hist-search)
    $program --complete (string unescape -- "$typed") $given </dev/null 2>/dev/null | __chathist_safe
end

# Those that answered of late in the history, behind a total and before those without a name.
function __chathist_stored_models
    set -l given (__chathist_given --history); or return
    set -l program (__chathist_program hist-stats)
    $program --by model --newest 500 $given </dev/null 2>/dev/null |
        sed '1d; ${ /^unknown[[:blank:]]/d; }' | __chathist_safe
end

function __chathist_models
    set -l server (__chathist_given --provider -p) (__chathist_given --base-url)
    set -l program (__chathist_program chat)
    set -l models ($program --models --cached --connect-timeout 1s --idle-timeout 2s $server \
        </dev/null 2>/dev/null | __chathist_safe)
    contains echo:echo\t $models; or set -a models echo:echo\t
    printf '%s\n' $models
end

# __chathist_presets templates|personas: with a slash it is a path.
function __chathist_presets
    set -l typed (commandline -ct | string replace -r '^(--[a-z]+=|-t)' '')
    if string match -q '*/*' -- $typed
        __fish_complete_path $typed
    else
        set -l program (__chathist_program chathist)
        $program $argv[1] </dev/null 2>/dev/null | __chathist_safe 2
    end
end

# Named in the error message about one that is not known.
function __chathist_providers
    set -l program (__chathist_program chat)
    __chathist_words ($program --models --provider '?' </dev/null 2>&1 |
        string replace -rf '.*known are ' '' | string split ', ')
end

function __chathist_tools
    set -l place $HOME/.config
    set -q XDG_CONFIG_HOME; and test -n "$XDG_CONFIG_HOME"; and set place $XDG_CONFIG_HOME
    for file in $place/chathist/tools/*
        test -f $file -a -x $file; and string replace -r '.*/' '' -- $file
    end | __chathist_safe
    __chathist_mcp | string replace -r '$' ':'
end

# Those that the user configuration defines.
function __chathist_mcp
    set -l directory $XDG_CONFIG_HOME
    string match -q '/*' -- "$directory"; or set directory $HOME/.config
    sed -n 's/^[[:blank:]]*mcp\.\([A-Za-z0-9_-]*\)[[:blank:]]*=.*/\1/p' $directory/chathist/config 2>/dev/null |
        __chathist_safe
end

function __chathist_options -a name
    set -l program (__chathist_program $name)
    complete -c $name -f
    $program --completion-table </dev/null 2>/dev/null | while read -l line
        set -l fields (string split \t -- $line)
        test (count $fields) = 5; or continue
        set -l spec -c $name
        if test -n "$fields[2]"
            set -a spec -l (string sub -s 3 -- $fields[2]) -d $fields[5]
            test -n "$fields[1]"; and set -a spec -s (string sub -s 2 -- $fields[1])
        end
        switch $fields[3]
            case file
                set -a spec -r -F
            case role
                set -a spec -x -a '(__chathist_words user assistant system tool)'
            case time
                set -a spec -x -a '(__chathist_words today yesterday 1d 7d 30d)'
            case query
                set -a spec -x -k -a '(__chathist_query)'
            case when
                set -a spec -x -a '(__chathist_words auto always never)'
            case choice word
                set -a spec -x -a "(__chathist_words "(string replace -a '|' ' ' -- $fields[4])")"
            case choices
                set -a spec -x -a "(__chathist_list "(string replace -a '|' ' ' -- $fields[4])")"
            case session
                set -a spec -x -k -a "(__chathist_sessions "(string replace -ra '[^A-Z]' '' -- $fields[4])")"
            case model
                test $name = chat; and set -a spec -x -k -a '(__chathist_models)'
                test $name = chat; or set -a spec -x -k -a '(__chathist_stored_models)'
            case tool
                set -a spec -r -F -a '(__chathist_tools)'
            case template
                set -a spec -x -a '(__chathist_presets templates)'
            case persona
                set -a spec -x -a '(__chathist_presets personas)'
            case provider
                set -a spec -x -k -a '(__chathist_providers)'
            case mcp
                set -a spec -x -k -a '(__chathist_mcp)'
            case text number
                set -a spec -x
        end
        # The operand that is a choice comes first; after one of them comes a provider.
        if test -z "$fields[2]" -a "$fields[3]" = choice
            set -a spec -n "not __fish_seen_subcommand_from "(string replace -a '|' ' ' -- $fields[4])
            complete -c $name -n '__fish_seen_subcommand_from key' -x -k -a '(__chathist_providers)'
        end
        # Operands have no name, and may be nothing.
        test -n "$fields[2]" -o "$fields[3]" = session -o "$fields[3]" = file -o "$fields[3]" = choice -o "$fields[3]" = word; and complete $spec
    end
end

__chathist_options (status basename | string replace -r '\.fish$' '')
