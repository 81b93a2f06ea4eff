/**
 * UI strings that say why a run waits. The reason itself has no full stop, because a time may be
 * appended to it. Details end with a full stop.
 */
import { formatList } from '../../../../text/format.ts'
import { messages, plural } from '../../../../text/messages.ts'

export const waitingText = messages('run-waiting', {
  title: 'Why it is waiting',
  steps: (names: readonly string[], more: number) =>
    `${names.length + more === 1 ? 'Step' : 'Steps'} ${names.join(', ')}` +
    (more > 0 ? ` and ${plural(more, 'more', 'more')}` : ''),
  either: (names: readonly string[]) => (names.length === 0 ? 'a person' : formatList(names)),
  role: (name: string) => `the role ${name}`,
  queued: 'The run waits until it may start',
  cancel: 'The run is being cancelled',
  interaction: (steps: string, who: string) => `${steps} waits for an answer from ${who}`,
  worker: (steps: string, queue: string, count: number) =>
    `${steps} ${count === 1 ? 'waits' : 'wait'} for a worker: ` +
    `${plural(count, 'job', 'jobs')} in queue ${queue}`,
  action: (steps: string, count: number) => `${steps} ${count === 1 ? 'waits' : 'wait'} for a job`,
  lease: (steps: string, worker: string, count: number) =>
    `${steps} ${count === 1 ? 'is' : 'are'} in progress at ${worker === '' ? 'a worker' : worker}`,
  timer: (steps: string) => `${steps} sleeps`,
  retry: (steps: string) => `${steps} failed and is tried again`,
  signal: (steps: string, name: string) => `${steps} waits for the signal ${name}`,
  event: (steps: string, type: string) => `${steps} waits for the event ${type}`,
  run: (steps: string) => `${steps} waits for another run`,
  agent: (steps: string) => `${steps} waits for an agent`,
  other: (steps: string) => `${steps} waits`,
  stopping: 'The run ends when its work has stopped.',
  stoppingWorker: (worker: string) => `The worker ${worker} has not stopped yet.`,
  lastError: (error: string) => `The last attempt failed: ${error}`,
  environment: (id: string) =>
    `The environment ${id} has not admitted the job yet. It may be in preparation, orphaned or ` +
    'leased to another holder.',
  executor: 'All executors of the service are busy.',
  slot: (workers: number) =>
    workers === 1
      ? 'One worker accepts the job, and is busy.'
      : `${workers} workers accept the job, and are busy.`,
  noWorker: (action: string) => `No connected worker accepts the action ${action} of this queue.`,
  noWorkerIn: (action: string, environment: string) =>
    `No connected worker of the environment ${environment} accepts the action ${action}.`,
  since: 'for',
  until: 'until',
  answer: 'Open the question',
  sendSignal: 'Send the signal',
  publish: 'Publish an event',
  workers: 'See workers and queues',
  openRun: 'Open the run',
  openSession: 'Open the session',
  resume: 'Resume now',
  more: (count: number) => `Show ${plural(count, 'more reason', 'more reasons')}`,
})
