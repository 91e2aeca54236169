#include "runs/completion/completion.h"

#include <stdio.h>

static struct err run(struct invocation *in)
{
	struct text_builder b = { 0 };
	int shell;
	TRY(command_pick(in->command, in->word[0], &shell));
	completion_script(shell, &b);
	fputs(b.data, stdout);
	text_builder_free(&b);
	return OK;
}

const struct command command_completion = {
	.name = "completion",
	.words = "SHELL",
	.help = "print a script that completes commands, options and names: bash, zsh",
	.more = "For the running shell; to keep it, put the line into ~/.bashrc, or into ~/.zshrc behind compinit:\n"
		"  eval \"$(ropewalk completion bash)\"\n"
		"  source <(ropewalk completion zsh)",
	.least = 1,
	.most = 1,
	.word_at = completion_shell_at,
	.run = run,
};
