/** `baton worker`: a worker with the stock actions. */
import { type Command, InvalidArgumentError } from 'commander'
import { stockActions } from '../actions.ts'
import type { JobEvent } from '../worker/options.ts'
import { Worker } from '../worker.ts'
import { connected, workerConnectionOf } from './connection/connection.ts'
import { Mistake } from './mistake.ts'
import type { Shell } from './shell.ts'

interface Flags {
  readonly actions?: string
  readonly concurrency: number
  readonly queue?: readonly string[]
  readonly instance?: string
  readonly captureConsole?: true
}

/**
 * Adds `baton worker` to a program; `addGroups` adds the rows of the group `worker` as its
 * subcommands.
 */
export function addWorker(program: Command, shell: Shell): void {
  const command = connected(
    program
      .command('worker')
      .description('Run a worker with the stock actions, or list and drain workers'),
  )
    .option(
      '--actions <names>',
      `comma-separated list of ${Object.keys(stockActions).join(', ')}; by default all`,
    )
    .option('--concurrency <n>', 'maximum number of concurrent jobs', whole, 4)
    .option('--queue <names...>', 'queues to claim jobs from; by default all')
    .option(
      '--instance <id>',
      'instance name of this worker, unique in the project; by default based on the host name',
    )
    .option('--capture-console', 'send what actions write with console.* to the logs of their runs')
    .addHelpText(
      'after',
      '\nExample:\n  $ baton worker --actions print,time --concurrency 8\n' +
        'It runs until Ctrl-C or SIGTERM, then finishes its active jobs; ' +
        'a second signal stops them.\n',
    )
  command.action(shell.guarded(async () => run(command, shell)))
}
const whole = (text: string): number => {
  const value = Number(text)
  if (!Number.isInteger(value) || value < 1)
    throw new InvalidArgumentError('It must be a whole number of at least 1.')
  return value
}

/**
 * Returns the stock actions with the given comma-separated names; all of them by default.
 * @throws Mistake if a name is unknown or the list is empty.
 */
export function actionsOf(names: string | undefined): typeof stockActions {
  const wanted =
    names
      ?.split(',')
      .map((name) => name.trim())
      .filter((name) => name !== '') ?? Object.keys(stockActions)
  const unknown = wanted.filter((name) => !Object.hasOwn(stockActions, name))
  if (unknown.length > 0 || wanted.length === 0)
    throw new Mistake(
      `Unknown stock action: ${unknown.join(', ') || 'an empty name'}. ` +
        `Available: ${Object.keys(stockActions).join(', ')}. ` +
        'Write your own actions with the worker library, see client/worker.ts.',
    )
  return Object.fromEntries(Object.entries(stockActions).filter(([name]) => wanted.includes(name)))
}

async function run(command: Command, { env, note }: Shell): Promise<void> {
  const { actions, concurrency, queue, instance, captureConsole } = command.opts<Flags>()
  const connection = workerConnectionOf(command.optsWithGlobals(), env)
  if (connection.key === undefined) note('No API key found: connecting without one.')
  const worker = new Worker({
    ...connection,
    concurrency,
    actions: actionsOf(actions),
    name: 'baton worker',
    log: note,
    ...(captureConsole && { captureConsole }),
    onJob: (event) => {
      if (event.type !== 'started') note(jobLine(event))
    },
    ...(queue && { queues: queue.flatMap((name) => name.split(',')) }),
    ...(instance !== undefined && { instance }),
  })
  let asked = 0
  const leave = () => {
    note(++asked === 1 ? 'Finishing the active jobs; a second signal stops them.' : 'Stopping.')
    void (asked === 1 ? worker.drain() : worker.stop())
  }
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, leave)
  try {
    await worker.start().then(
      () =>
        note(
          `Worker ${worker.instance} claims jobs of project ${connection.project} at ${connection.url.join(', ')}.`,
        ),
      () => {},
    )
    const end = await worker.ended
    if (end.reason === 'failed') throw end.error
    note(`The worker has ${end.reason === 'drained' ? 'finished' : 'stopped'}.`)
  } finally {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.off(signal, leave)
  }
}

/** Formats one line about a job that has ended on this worker. */
const jobLine = ({ type, job, ...more }: JobEvent): string =>
  `${type.padEnd(9)}  ${job.action_name ?? job.kind}  ${job.id}  attempt ${job.claim_attempt}` +
  ('ms' in more ? `  ${Math.round(more.ms)} ms` : '') +
  ('error' in more && more.error !== undefined ? `  ${more.error}` : '')
