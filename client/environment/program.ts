/**
 * The worker of an environment as a program: connects, performs jobs in the workspace, and ends
 * when it has had no work for its keep-warm time.
 *
 * Invariants:
 * E1. An idle worker drains before it ends, so no claimed job is lost.
 * E2. The exit code is 0 after a drain or a stop, and 1 if the service has rejected the worker.
 */
import { randomUUID } from 'node:crypto'
import { mkdir } from 'node:fs/promises'
import { Transport } from '../transport.ts'
import type { JobEvent, WorkerEnd, WorkerOptions } from '../worker/options.ts'
import { type Clock, systemClock } from '../worker/ports.ts'
import { Worker } from '../worker.ts'
import { environmentWorkerActions } from './actions.ts'
import { commandVariables } from './command-variables.ts'
import { Fence } from './fence.ts'
import { CredentialRelay } from './git/relay.ts'
import { credentialsOf } from './git/remote.ts'
import { IdleTimer, type KeepWarm } from './keep-warm.ts'
import { LogFile } from './log.ts'
import { Secrets } from './secrets.ts'
import type { Settings, Variables } from './settings.ts'
import { hasTerminals, openTerminal } from './terminal.ts'
import { Workspace } from './workspace.ts'

export interface EnvironmentWorker {
  readonly ended: Promise<WorkerEnd>
  /** Finishes the running jobs, then ends. */
  drain(): void
  /** Cancels the running jobs and returns them to their queues. Ends within 5 s. */
  stop(): void
  /** Kills the commands of the running jobs, and ends immediately without reporting the jobs. */
  abandon(): void
}

/**
 * Starts the worker. The worker connects in the background, and reconnects after each lost
 * connection.
 * @param variables environment variables of the process.
 * @param note writes a line to standard error.
 * @param clock measures the keep-warm time.
 * @throws Error if the workspace cannot be created; WorkerError if an address or the key cannot be
 * used.
 */
export async function startEnvironmentWorker(
  settings: Settings,
  variables: Variables,
  note: (line: string) => void,
  clock: Clock = systemClock(randomUUID),
): Promise<EnvironmentWorker> {
  const { url, key, project, environment_id, queues, concurrency, keepWarm } = settings
  await mkdir(settings.workspace, { recursive: true })
  const workspace = await Workspace.open(settings.workspace)
  const secrets = new Secrets()
  secrets.add(key)
  const file = settings.logs === undefined ? undefined : new LogFile(settings.logs)
  const warn = (line: string) => {
    const text = `${new Date().toISOString()} ${secrets.redact(line)}`
    if (file) file.write(text)
    else note(text)
  }
  const log = settings.quiet ? () => {} : warn

  const transport = new Transport({ url, key, project })
  const ask = credentialsOf(transport, environment_id, secrets)
  const relay = await CredentialRelay.start(ask, warn)
  const fence = new Fence(settings.fence, warn)
  const commands = commandVariables(variables, settings, relay.config)
  const world = { workspace, variables: commands, secrets, relay, ask, transport, fence }
  const idle = new IdleTimer(clock, keepWarm, () => {
    log('no work for the keep-warm time')
    void worker.drain()
  })
  const canOpen = await hasTerminals()
  let terminals = 0
  const worker: Worker = createdOr(() => relay.close(), {
    url,
    key,
    project,
    concurrency,
    environment_id,
    instance: `${environment_id.slice(0, 200)}-${randomUUID().slice(0, 8)}`,
    name: 'environment worker',
    actions: environmentWorkerActions({ ...world, logs: settings.logs }, settings.actions),
    capabilities: capabilitiesOf(keepWarm, canOpen),
    ...(queues && { queues }),
    ...(canOpen && {
      terminals: (request) => openTerminal({ ...request, env: commands, cwd: settings.workspace }),
    }),
    onTerminals: (count) => {
      // An open terminal prevents the worker from ending, as a job does.
      if (count > terminals) idle.started()
      else idle.ended()
      terminals = count
    },
    log,
    redact: (text) => secrets.redact(text),
    onState: (state) => {
      log(state)
      if (state === 'registered') idle.registered()
    },
    onJob: (event) => {
      if (event.type === 'started') idle.started()
      else idle.ended()
      log(jobLine(event))
    },
  })
  const ended = worker.ended.then((end) => {
    idle.stop()
    relay.close()
    if (end.reason === 'failed') warn(`${end.error.code}: ${end.error.message}`)
    return end
  })
  // A failed start is reported through `ended`.
  void worker.start().catch(() => {})
  return {
    ended,
    drain: () => void worker.drain(),
    stop: () => void worker.stop(),
    abandon: () => void worker.abandon(),
  }
}

/** Creates a worker. If this fails, calls `release`, because open resources keep a process alive. */
function createdOr(release: () => void, options: WorkerOptions): Worker {
  try {
    return new Worker(options)
  } catch (error) {
    release()
    throw error
  }
}

/**
 * Returns the capabilities that the worker announces. The process itself stays alive for the
 * keep-warm time, so `keep-warm:established` is always among them. `keep-warm:lifetime` is added if
 * that time is unlimited.
 */
const capabilitiesOf = ({ idle_ms }: KeepWarm, terminals: boolean): readonly string[] => [
  'keep-warm:established',
  ...(Number.isFinite(idle_ms) ? [] : ['keep-warm:lifetime']),
  ...(terminals ? ['terminal'] : []),
]
const jobLine = ({ type, job, ...more }: JobEvent): string =>
  `${type} ${job.action_name ?? job.kind} ${job.id} attempt ${job.claim_attempt}` +
  ('ms' in more ? ` ${Math.round(more.ms)} ms` : '') +
  ('error' in more && more.error !== undefined ? ` ${more.error}` : '')
