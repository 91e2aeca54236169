#include "model/base/stb.h"
#include "runs/study/shard.h"
#include "runs/study/team.h"

#include <stdio.h>
#include <stdlib.h>

#include "tests/program.h"
#include "tests/support.h"

/* A study divided between machines that share no folder, and joined again; who a process is among several. */

/* ---- Which cells ---- */

static void test_parse(void **state)
{
	(void)state;
	static const char *const bad[] = { "0/2", "3/2", "-1/2", "1/0", "2", "/", "1/", "/2", "1/2/3", "a/b", "1.5/2",
					   "1/100000", "1/99999999999999999999", "nan/2", "Auto" };
	struct shard s;
	assert_ok(shard_parse("2/5", &s));
	assert_int_equal(s.index, 2);
	assert_int_equal(s.count, 5);
	assert_ok(shard_parse("", &s));
	assert_int_equal(s.count, 0);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_err(shard_parse(bad[i], &s), ERR_USAGE, "--shard: '");
}

#define GRID "encoding = learned(overflow=clamp), rope, learned, alibi, learned(overflow=random)\nseed = 1, 2, 3\n"

/* How many trainings a shard has; adds its cells to `taken`. */
static int trainings(const struct grid *g, struct shard shard, int *taken)
{
	bool mine[64];
	int count = 0;
	shard_cells(g, &shard, mine);
	for (int i = 0; i < arrlen(g->cell); i++) {
		bool first = mine[i];
		for (int j = 0; j < arrlen(g->cell); j++) {
			bool same = !strcmp(g->cell[j].trained, g->cell[i].trained);
			assert_true(!same || mine[i] == mine[j]);
			first = first && !(j < i && same);
		}
		count += first;
		taken[i] += mine[i];
	}
	return count;
}

static void test_division(void **state)
{
	(void)state;
	struct study s;
	struct grid g;
	assert_ok(study_parse("f", GRID, &s));
	assert_ok(grid_build(&s, &g));
	for (int count = 1; count <= 12; count++) {
		int taken[64] = { 0 }, least = 64, most = 0;
		for (int i = 1; i <= count; i++) {
			int n = trainings(&g, (struct shard){ i, count }, taken);
			least = n < least ? n : least;
			most = n > most ? n : most;
		}
		assert_in_range(most - least, 0, 1);
		for (int i = 0; i < arrlen(g.cell); i++)
			assert_int_equal(taken[i], 1);
	}
	int all[64] = { 0 };
	assert_int_equal(trainings(&g, (struct shard){ 0, 0 }, all), 9);
	grid_free(&g);
	study_free(&s);
}

/* ---- Who is this? ---- */

static const char *const variables[] = { "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMIX_NAMESPACE", "PMI_RANK",
					 "PMI_SIZE", "PMI_JOBID", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_JOB_ID",
					 "SLURM_STEP_ID", "SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_COUNT",
					 "SLURM_ARRAY_TASK_MIN", "SLURM_ARRAY_TASK_STEP", TEAM_WORKER };

static void forget(void)
{
	for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
		unsetenv(variables[i]);
}

/* "A=1 B=2" into the environment, in which nothing else of the kind is left. */
static void environment(const char *text)
{
	char copy[200], *rest = NULL;
	forget();
	snprintf(copy, sizeof copy, "%s", text);
	for (char *word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
		char *equals = strchr(word, '=');
		*equals = '\0';
		assert_int_equal(setenv(word, equals + 1, 1), 0);
	}
}

static void test_team(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		int rank, size;
		const char *token;
	} cases[] = {
		{ "", 0, 1, "" },
		{ "OMPI_COMM_WORLD_RANK=2 OMPI_COMM_WORLD_SIZE=8 PMIX_NAMESPACE=77", 2, 8, "77" },
		{ "PMI_RANK=0 PMI_SIZE=3", 0, 3, "" },
		{ "SLURM_PROCID=1 SLURM_NTASKS=2 SLURM_JOB_ID=5 SLURM_STEP_ID=0", 1, 2, "5.0" },
		{ "SLURM_PROCID=x SLURM_NTASKS=2", 0, 1, "" },
		{ "PMI_RANK=3 PMI_SIZE=3", 0, 1, "" },
		{ "OMPI_COMM_WORLD_RANK=-1 OMPI_COMM_WORLD_SIZE=3", 0, 1, "" },
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		environment(cases[i].text);
		struct team t = team_find();
		assert_int_equal(t.rank, cases[i].rank);
		assert_int_equal(t.size, cases[i].size);
		assert_string_equal(t.token, cases[i].token);
		assert_int_equal(team_speaks(&t), !cases[i].rank);
		assert_false(t.worker);
	}
	environment("OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2");
	setenv(TEAM_WORKER, "1/4 2 abc", 1);
	struct team worker = team_find();
	assert_true(worker.worker && worker.rank == 1 && worker.size == 4 && worker.threads == 2);
	assert_false(team_speaks(&worker));
	forget();
}

static void test_part_by_launcher(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		int index, count; /* index 0: refused */
	} cases[] = {
		{ "", 0, 0 },
		{ "OMPI_COMM_WORLD_RANK=2 OMPI_COMM_WORLD_SIZE=8", 3, 8 },
		{ "PMI_RANK=0 PMI_SIZE=3", 1, 3 },
		{ "SLURM_PROCID=1 SLURM_NTASKS=2", 2, 2 },
		{ "SLURM_ARRAY_TASK_ID=3 SLURM_ARRAY_TASK_COUNT=8 SLURM_PROCID=0 SLURM_NTASKS=1", 3, 8 },
		{ "SLURM_ARRAY_TASK_ID=0 SLURM_ARRAY_TASK_COUNT=4 SLURM_ARRAY_TASK_MIN=0", 1, 4 },
		{ "SLURM_ARRAY_TASK_ID=6 SLURM_ARRAY_TASK_COUNT=3 SLURM_ARRAY_TASK_MIN=2 SLURM_ARRAY_TASK_STEP=2", 3, 3 },
		{ "SLURM_ARRAY_TASK_ID=9 SLURM_ARRAY_TASK_COUNT=3 SLURM_ARRAY_TASK_MIN=1", 0, 0 },
		{ "SLURM_ARRAY_TASK_ID=3", 0, 0 },
		{ "OMPI_COMM_WORLD_RANK=8 OMPI_COMM_WORLD_SIZE=8", 0, 0 },
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct shard s;
		environment(cases[i].text);
		if (!cases[i].index) {
			assert_err(shard_parse("auto", &s), ERR_USAGE, "--shard=auto");
			continue;
		}
		assert_ok(shard_parse("auto", &s));
		assert_int_equal(s.index, cases[i].index);
		assert_int_equal(s.count, cases[i].count);
	}
	forget();
}

/* ---- The program ---- */

/* Six cells of four trainings. */
#define TOY "encoding = learned(overflow=random), rope, learned(overflow=clamp)\nseed = 101, 102\nsteps = 20\n" \
	    "layers = 1\nwidth = 16\nhidden = 16\nbatch = 2\ntrain_length = 20\nwarmup = 5\nmultiples = 1, 2\n" \
	    "scaling = none, linear\nsequences = 4\nreferences = off\n"

static int start(void **state)
{
	(void)state;
	forget();
	program_start();
	program_put("toy.study", TOY, strlen(TOY));
	shell("set -e\nexec 2>/dev/null\n"
	      "ropewalk study toy.study --out=straight >straight.txt\n"
	      "for i in 1 2; do ropewalk study toy.study --out=part-$i --shard=$i/2 >part-$i.txt; done");
	return 0;
}

/* Every line must succeed. no: a command that must not. same: the files of two studies that the job determines are
 * the same. */
#define CHECK                                                                                                       \
	"set -e\nno() { ! \"$@\"; }\n"                                                                               \
	"files() { ls $1/*/* | sed \"s,^$1/,,\" | grep -E 'model.safe|train.jsonl|eval-'; }\n"                       \
	"same() { files $1 >names; files $2 | cmp - names\n"                                                        \
	"  [ $(grep -c model.safetensors names) = 6 ]; [ $(grep -c eval- names) = 16 ]\n"                           \
	"  while read -r name; do cmp $1/$name $2/$name; done <names; }\n"                                          \
	"table() { sed -n '2,/^$/p' $1; }\n"

static void test_same_files(void **state)
{
	(void)state;
	shell(CHECK "ropewalk merge part-1 part-2 --out=joined >joined.txt\n"
		    "same straight joined\n"
		    "grep -q '6 of 6 models complete' joined.txt\n"
		    "no grep -q missing joined.txt\n"
		    "ropewalk table joined >table.txt\n"
		    "table table.txt >one\n"
		    "table straight.txt | cmp - one");
}

static void test_jobs_same_files(void **state)
{
	(void)state;
	shell(CHECK "ropewalk study toy.study --out=jobs --jobs=2 --threads=2 >jobs.txt 2>jobs.err\n"
		    "same straight jobs\n"
		    "[ $(grep -c '^\\[[12]\\] [1-6] of 6: ' jobs.err) = 6 ]\n"
		    "table jobs.txt >one\n"
		    "table straight.txt | cmp - one");
}

/* A part's table shows the rest as absent, and another study is not joined. */
static void test_parts(void **state)
{
	(void)state;
	shell(CHECK "grep -q '1 of 2 seeds' part-1.txt\n"
		    "[ $(ls -d part-1/*/ part-2/*/ | wc -l) = 6 ]\n"
		    "ropewalk study toy.study --out=fifth --shard=5/5 >fifth.txt 2>err\n"
		    "grep -q 'models: 0 of 6 (shard 5 of 5)' err\n"
		    "no ls -d fifth/*/ 2>/dev/null\n"
		    "sed -n '/^rope, none/p' fifth.txt | grep -q ' - '\n"
		    "ropewalk study toy.study --out=other --seed=101,103 >/dev/null 2>&1");
	program_refuses("merge part-1 other --out=new", "other: another study than part-1: it has `seed = 101, 103`",
			"that one `seed = 101, 102`");
	program_refuses("merge part-1 part-1/. --out=new", "part-1/.: is part-1", NULL);
	program_refuses("merge part-1 part-2 --out=part-2", "--out: part-2 is one of the folders", NULL);
	program_refuses("merge part-1 part-2", "--out: a folder is needed", NULL);
	program_refuses("merge part-1 nowhere --out=new", "nowhere", NULL);
	program_refuses("merge part-1 --out=other", "another study", NULL);
}

static void test_missing(void **state)
{
	(void)state;
	shell(CHECK "seconds() { sed -n 's/^  \"seconds\": \\([^,]*\\).*/\\1/p' \"$@\"; }\n"
		    "ropewalk merge part-2 --out=half >half.txt\n"
		    "grep -q '1 folder merged; 3 of 6 models complete' half.txt\n"
		    "[ $(grep -c 'missing: .*-seed-101-.*: not trained' half.txt) = 3 ]\n"
		    "ropewalk merge part-1 --out=half >half.txt\n"
		    "grep -q '6 of 6' half.txt\n"
		    "both=$(seconds half/record.json)\n"
		    "sum=$(seconds part-1/record.json part-2/record.json | paste -sd+ -)\n"
		    "ropewalk merge part-1 part-2 --out=half >/dev/null\n"
		    "[ $(seconds half/record.json) = $both ]\n"
		    "awk \"BEGIN { r = $both / ($sum); exit !(r > 0.999999 && r < 1.000001) }\"");
}

/* What two folders have of one model must agree, and nothing is written where it does not. */
static void test_different_files(void **state)
{
	(void)state;
	shell(CHECK "cp -R straight lying\n"
		    "cd lying/rope-seed-102-*\n"
		    "sed '2s/,/,1/' train.jsonl >other\n"
		    "mv other train.jsonl");
	struct program_run r = program_run("merge straight lying --out=new");
	program_failed("merge", &r, 1, "lying/rope-seed-102-", "train.jsonl differ");
	assert_false(program_has("new"));
	shell(CHECK "cd lying/rope-seed-102-*\n"
		    "cp ../../straight/rope-seed-102-*/train.jsonl .\n"
		    "sed '2s/,recall,/,recoil,/' eval-none-afc5064e.csv >other\n"
		    "no cmp other eval-none-afc5064e.csv\n"
		    "mv other eval-none-afc5064e.csv");
	r = program_run("merge straight lying --out=new");
	program_failed("merge", &r, 1, "straight/rope-seed-102-", "eval-none-afc5064e.csv differ");
	assert_false(program_has("new"));
}

/* Rows of one length fewer are no contradiction, in whichever order. */
static void test_fewer_rows(void **state)
{
	(void)state;
	shell(CHECK "cp -R straight fewer\n"
		    "cd fewer/rope-seed-101-*\n"
		    "grep -v ,40,2, eval-none-afc5064e.csv >other\n"
		    "no cmp other eval-none-afc5064e.csv\n"
		    "mv other eval-none-afc5064e.csv\n"
		    "cd ../..\n"
		    "ropewalk merge fewer --out=all >fewer.txt\n"
		    "grep -q 'missing: rope-seed-101-.*: 1 of 4 evaluations' fewer.txt\n"
		    "ropewalk merge straight --out=all >/dev/null\n"
		    "same straight all\n"
		    "ropewalk merge fewer --out=all >/dev/null\n"
		    "same straight all");
}

/* Killed at any place: copied are files, one after the other, the record last. */
static void test_cut_short(void **state)
{
	(void)state;
	shell(CHECK "ropewalk merge part-1 part-2 --out=whole >/dev/null\n"
		    "for files in record.json 'record.json model.safetensors' 'record.json config eval-none-*'; do\n"
		    "  rm -rf cut; cp -R whole cut; cd cut/rope-seed-101-*; rm $files; cd ../..\n"
		    "  ropewalk merge part-1 part-2 --out=cut >cut.txt\n"
		    "  grep -q '6 of 6' cut.txt\n"
		    "  same straight cut\n"
		    "  [ $(cat cut/*/record.json | grep -c '\"status\": \"finished\"') = 6 ]\n"
		    "done\n"
		    "rm -rf cut; cp -R whole cut; rm cut/record.json cut/command\n"
		    "ropewalk merge part-1 part-2 --out=cut >/dev/null\n"
		    "cmp cut/record.json whole/record.json");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parse),	   cmocka_unit_test(test_division),
		cmocka_unit_test(test_team),	   cmocka_unit_test(test_part_by_launcher),
		cmocka_unit_test(test_same_files), cmocka_unit_test(test_jobs_same_files),
		cmocka_unit_test(test_parts),	   cmocka_unit_test(test_missing),
		cmocka_unit_test(test_different_files), cmocka_unit_test(test_fewer_rows),
		cmocka_unit_test(test_cut_short),
	};
	return cmocka_run_group_tests_name("runs shards", tests, start, program_teardown);
}
