/**
 * The command line program, `baton <command>`. Commands that start nodes accept the settings in the
 * settings table. Client commands call a running server. Each command loads only the modules that
 * it needs, because loading the modules of nodes and of the client commands takes most of the
 * startup time.
 */
import { Command } from 'commander'
import { CommandWithFlags } from '../client/cli/completion.ts'
import { addHelp, oneLineErrors } from '../client/cli/usage.ts'
import { addBackupCommands } from './commands/backup-options.ts'
import { benchmarks, runBench } from './commands/bench.ts'
import { runChaosCommand } from './commands/chaos.ts'
import { addPermissionsCommand } from './commands/permissions.ts'
import { runSimulations } from './commands/simulate.ts'
import { clusterAccepts, readClusterConfig } from './config/cluster.ts'
import { readConfig, settingsTable } from './config.ts'
import { StartFault } from './process/fault.ts'
import { version } from './version.ts'

/** The commands that start nodes. */
const SERVING: ReadonlySet<string> = new Set(['start', 'node', 'cluster'])

const settings = (accepts: (setting: string) => boolean): string =>
  settingsTable()
    .filter(({ name }) => accepts(name))
    .map(
      ({ name, flag, standard, description }) =>
        `  ${flag.padEnd(20)} ${name.padEnd(24)} ${description}` +
        (standard === undefined || standard === '' ? '' : ` (${standard})`),
    )
    .join('\n')

/** Returns the settings. If they are invalid, prints every fault to standard error and exits. */
function valid<T extends object>(
  command: Command,
  read: T | { readonly faults: readonly string[] },
): T {
  if (!('faults' in read)) return read
  process.stderr.write(
    `Invalid settings:\n${read.faults.map((fault) => `  - ${fault}`).join('\n')}\n` +
      `List all settings with: baton ${command.name()} --help\n`,
  )
  process.exit(2)
}

const program = new Command('baton')
  .description('Work coordination for humans, systems and AI agents, over NATS.')
  .version(version)
const serving = (
  name: string,
  description: string,
  run: (command: Command) => Promise<void>,
  accepts: (setting: string) => boolean = () => true,
) => {
  const flags = settingsTable().filter(({ name }) => accepts(name))
  const command = new CommandWithFlags(
    name,
    flags.map(({ flag }) => flag),
  )
    .description(description)
    .allowUnknownOption()
    .allowExcessArguments()
    .argument('[settings...]', 'flags from the table below')
    .addHelpText(
      'after',
      `\nSettings (flag, environment variable, meaning, default):\n${settings(accepts)}\n`,
    )
    .action(async (_: unknown, __: unknown, command: Command) => run(command))
  program.addCommand(command)
}
const runNode = async (command: Command, greet: boolean): Promise<void> => {
  const { config } = valid(command, readConfig(process.env, command.args))
  return (await import('./commands/start.ts')).runNode(config, greet)
}

serving('start', 'Start everything in one process, with an embedded NATS server', (command) =>
  runNode(command, true),
)
serving(
  'node',
  'Start one node of a cluster; set the NATS servers with --nats and its roles with --roles',
  (command) => runNode(command, false),
)
serving(
  'cluster',
  'Start a whole cluster on this machine: 3 NATS servers, 2 gateways, 2 shard nodes, 1 view node',
  async (command) => {
    const settings = valid(command, readClusterConfig(process.env, command.args))
    return (await import('./commands/cluster.ts')).runCluster(settings)
  },
  clusterAccepts,
)
addBackupCommands(program)
addPermissionsCommand(program)
program
  .command('tour')
  .description(
    'Run a workflow over the files of this checkout with two workers, then a loop for a git ' +
      'repository, an agent that answers a question, a report with a table, and an agent with a ' +
      'workspace, and check the outcome of each',
  )
  .option(
    '--server <urls>',
    'address of the server, or several addresses, comma-separated; ' +
      'by default BATON_URL, or http://127.0.0.1:8080 with the port of BATON_PORT',
  )
  .option(
    '--key <key>',
    'API key; by default BATON_KEY, or the owner key stored by a server started here',
  )
  .option('--folder <folder>', 'folder whose files the workflow measures', process.cwd())
  .option('--no-loop', 'skip the second part, which requires git')
  .option('--no-agent', 'skip the third part')
  .option('--no-tables', 'skip the fourth part')
  .option('--no-coding', 'skip the fifth part')
  .action(async (options) => (await import('./commands/tour.ts')).runTourCommand(options))
program
  .command('bench')
  .description('Run the benchmarks, and those of peers that are installed; writes bench/RESULTS.md')
  .argument('[name]', 'the only benchmark to run')
  .option(
    '--rounds, --times <n>',
    'runs of each benchmark; the results are medians (3; 5 for the benchmark `cost`)',
  )
  .option('--quick', 'use smaller counts')
  .option('--size <n>', 'rows of the measured table, in the benchmark `tables`')
  .option('--note <sentence>', 'sentence to store with the results')
  .option(
    '--profile [folder]',
    'write CPU profiles of the server to this folder; `cost` also prints the time of each module',
  )
  .option('--against <commit>', 'compare this tree with a commit, in the benchmark `cost`')
  .option(
    '--scenario <name>',
    'load of the benchmark `cost`: runs, steps, foreach, interactions, turns, followers or deltas',
  )
  .option('--runs <n>', 'runs, or other pieces of work, in each round of the benchmark `cost`')
  .option('--seconds <n>', 'duration of the soak of the benchmark `console`, in seconds')
  .option('--roles', 'separate processes for shards, views and gateway, in the benchmark `cost`')
  .option('--no-save', 'do not write bench/RESULTS.md')
  .addHelpText(
    'after',
    () =>
      '\nBenchmarks:\n' +
      [...benchmarks()].map(([name, about]) => `  ${name.padEnd(14)} ${about}`).join('\n') +
      '\n\nPeers are measured if they are installed: npm install --prefix bench/peers\n',
  )
  .action(runBench)
program
  .command('simulate')
  .description('Run deterministic simulations of the engine with faults, one per seed')
  .option('--seeds <n>', 'number of seeds', '1000')
  .option('--from <n>', 'first seed', '1')
  .option('--failures <n>', 'number of failures after which to stop', '1')
  .option('--lines <n>', 'number of trace lines to show', '40')
  .option('--jobs <n>', 'number of processes; one per core by default')
  .action(runSimulations)
program
  .command('chaos')
  .description(
    'Kill, pause and disconnect the processes of a cluster under load, and check every guarantee to its clients',
  )
  .option('--seconds <n>', 'duration in seconds', '60')
  .option('--rate <n>', 'runs started per second', '200')
  .option('--seed <n>', 'seed of all random choices; random by default')
  .option('--links <auto|off>', 'cut network links where this machine allows it, or never', 'auto')
  .option(
    '--turns <n>',
    'run this many turns of agents with tools instead, while shard nodes, gateways and executors are killed',
  )
  .option('--accounts', 'run NATS in operator mode, with minimal permissions for each role')
  .option('--keep', 'keep the folder with the data of all processes')
  .addHelpText(
    'after',
    '\nExits with 0 if every guarantee held; otherwise lists the violations. ' +
      'It starts and removes a separate cluster and changes nothing else.',
  )
  .action(runChaosCommand)
// A server does not need the client commands. Loading them takes a tenth of its startup time.
const [word, next] = process.argv.slice(2)
if (!SERVING.has((word === 'help' ? next : word) ?? ''))
  (await import('../client/cli/commands.ts')).addClientCommands(program, process.env)
addHelp(program)
oneLineErrors(program)

try {
  await program.parseAsync()
} catch (error) {
  if (!(error instanceof StartFault)) throw error
  // Exits explicitly, because resources opened before the fault would keep the process alive.
  process.stderr.write(`${error.message}\n`, () => process.exit(1))
}
