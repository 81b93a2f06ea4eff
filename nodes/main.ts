/**
 * The command line program, `baton <command>`. Commands that start nodes read the settings table;
 * client commands call a running server.
 */
import { Command } from 'commander'
import { addClientCommands } from '../client/cli/commands.ts'
import { oneLineErrors } from '../client/cli/usage.ts'
import { addBackupCommands } from './commands/backup.ts'
import { benchmarks, runBench } from './commands/bench.ts'
import { runChaosCommand } from './commands/chaos.ts'
import { runCluster } from './commands/cluster.ts'
import { addPermissionsCommand } from './commands/permissions.ts'
import { runSimulations } from './commands/simulate.ts'
import { runNode } from './commands/start.ts'
import { runTourCommand } from './commands/tour.ts'
import { readConfig, settingsTable, type Config } from './config.ts'
import { StartFault } from './process/fault.ts'
import { version } from './version.ts'

const settings = (): string =>
  settingsTable()
    .map(
      ({ name, flag, standard, meaning }) =>
        `  ${flag.padEnd(20)} ${name.padEnd(24)} ${meaning}${standard === undefined || standard === '' ? '' : ` (${standard})`}`,
    )
    .join('\n')

/** Returns the configuration, or prints every fault to standard error and exits. */
function configured(argv: readonly string[]): Config {
  const read = readConfig(process.env, argv)
  if ('config' in read) return read.config
  process.stderr.write(
    `These settings cannot be used:\n${read.faults.map((fault) => `  - ${fault}`).join('\n')}\nSee them all with: baton start --help\n`,
  )
  process.exit(2)
}

const program = new Command('baton')
  .description('Work coordination for humans, systems and AI agents, over NATS.')
  .version(version)
const serving = (name: string, description: string, run: (config: Config) => Promise<void>) =>
  program
    .command(name)
    .description(description)
    .allowUnknownOption()
    .allowExcessArguments()
    .argument('[settings...]', 'flags of the table below')
    .addHelpText(
      'after',
      `\nSettings (flag, environment variable, meaning, default):\n${settings()}\n`,
    )
    .action(async (_: unknown, __: unknown, command: Command) => run(configured(command.args)))

serving('start', 'Start everything in one process, with a NATS server beside it', (config) =>
  runNode(config, true),
)
serving(
  'node',
  'Start one node of a cluster; name the servers with --nats and what it does with --roles',
  async (config) => {
    await runNode(config, false)
  },
)
serving(
  'cluster',
  'Start a whole cluster on this machine: 3 NATS servers, 2 gateways, 2 shard nodes, 1 view node',
  runCluster,
)
addBackupCommands(program)
addPermissionsCommand(program)
program
  .command('tour')
  .description(
    'Run a workflow over the files of this checkout with two workers, then a loop beside a git repository, then an agent that answers a question, and check the outcome of each',
  )
  .option(
    '--server <urls>',
    'address of the server, or several, comma-separated (BATON_URL; http://127.0.0.1:8080, or the port of BATON_PORT)',
  )
  .option(
    '--key <key>',
    'API key; else BATON_KEY, else the owner key stored by a server started here',
  )
  .option('--folder <folder>', 'what to measure', process.cwd())
  .option('--no-loop', 'without the second part, which needs git')
  .option('--no-agent', 'without the third part')
  .action(runTourCommand)
program
  .command('bench')
  .description('Measure, beside peers where they are installed; writes bench/RESULTS.md')
  .argument('[name]', 'only this one')
  .option('--times <n>', 'runs of each; medians are shown', '3')
  .option('--quick', 'smaller counts')
  .option('--note <sentence>', 'kept with the results')
  .option('--profile <folder>', 'write CPU profiles of the server there')
  .option('--no-save', 'do not write bench/RESULTS.md')
  .addHelpText(
    'after',
    () =>
      `\nBenchmarks:\n${[...benchmarks()].map(([name, about]) => `  ${name.padEnd(14)} ${about}`).join('\n')}\n\nPeers are measured once they are installed: npm install --prefix bench/peers\n`,
  )
  .action(runBench)
program
  .command('simulate')
  .description('Run the engine in simulated worlds that go wrong, one per seed')
  .option('--seeds <n>', 'how many', '1000')
  .option('--from <n>', 'the first seed', '1')
  .option('--failures <n>', 'stop after so many', '1')
  .option('--lines <n>', 'lines of a trace', '40')
  .option('--jobs <n>', 'processes; one for each core unless given')
  .action(runSimulations)
program
  .command('chaos')
  .description(
    'Kill, pause and cut off the processes of a whole cluster under load, and check every promise to its clients',
  )
  .option('--seconds <n>', 'how long', '60')
  .option('--rate <n>', 'runs started per second', '200')
  .option('--seed <n>', 'the dice; random unless given')
  .option('--links <auto|off>', 'cut network links where this machine allows it, or never', 'auto')
  .option(
    '--turns <n>',
    'instead: so many turns of agents with tools, while shard nodes, gateways and executors are killed',
  )
  .option('--accounts', 'NATS in operator mode, with the least permissions for each role of node')
  .option('--keep', 'keep the folder with the data of all processes')
  .addHelpText(
    'after',
    '\nIt exits with 0 when every promise was kept, and else names what was broken. A cluster of its own is started and removed; nothing else is touched.',
  )
  .action(runChaosCommand)
addClientCommands(program, process.env)
oneLineErrors(program)

// If another Baton process started this one and ends, this one stops in an orderly way.
process.once('disconnect', () => process.kill(process.pid, 'SIGTERM'))
process.channel?.unref()

try {
  await program.parseAsync()
} catch (error) {
  if (!(error instanceof StartFault)) throw error
  // Exits explicitly, because resources opened before the fault would keep the process alive.
  process.stderr.write(`${error.message}\n`, () => process.exit(1))
}
