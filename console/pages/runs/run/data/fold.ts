/**
 * Folds the records of steps and the events of a run into the state that the page shows. This
 * module needs no browser.
 *
 * Invariant: records may arrive before or after events, and both may arrive repeatedly. Events
 * arrive in the order of their sequences. An event that is older than the record of its step adds
 * spans of time, ended branches and the ids of related records, but never changes the state of the
 * step.
 */
import type { RunEventRecord, RunStep } from '../../../../../protocol/runs/schema.ts'
import type { WaitingOn } from '../../../../../protocol/runs/waiting.ts'

type Payload = Readonly<Record<string, unknown>>

/** A span of time in which a step waited. Times are in Unix milliseconds. */
export interface WaitSpan {
  readonly id: string
  /** What the step waits for, such as `worker`, `timer`, `event`, `interaction` or `branches`. */
  readonly kind: string
  readonly from: number
  to?: number
  /** Payload of the event that opened the wait, with members such as `queue` or `deadline`. */
  readonly facts: Payload
}
/** An attempt of a step. */
interface AttemptSpan {
  readonly number: number
  readonly from: number
  to?: number
  error?: string
}
/** A step as the page shows it. */
export interface StepView {
  readonly key: string
  /** Position in the order in which steps became known. */
  readonly order: number
  name?: string
  kind: string
  status: string
  attempt: number
  from?: number
  to?: number
  inputs?: unknown
  result?: unknown
  errorType?: string
  error?: string
  jobId?: string
  interactionId?: string
  childRunId?: string
  sessionId?: string
  turnId?: string
  agentId?: string
  verdict?: string
  waitingOn?: WaitingOn
  readonly waits: WaitSpan[]
  readonly attempts: AttemptSpan[]
  /** Counts of the step's branches or items; absent if it has none. */
  branches?: { total: number; done: number; failed: number }
  /** Time of the newest record or event whose state has been applied. */
  at: number
}

const ended: ReadonlySet<string> = new Set(['completed', 'failed', 'skipped', 'cancelled'])
/** Returns whether a step or run with this status has ended. */
export const hasEnded = (status: string): boolean => ended.has(status)

/** A span of time between two attempts of a step, in Unix milliseconds. */
interface Pause {
  readonly from: number
  readonly to: number
}
/**
 * Returns the spans between a failed attempt and the next one, in which the step did not work. They
 * occur when a failed run is retried.
 */
export const pausesOf = ({ attempts }: Pick<StepView, 'attempts'>): readonly Pause[] =>
  attempts.flatMap(({ from: to }, index) => {
    const from = attempts[index - 1]?.to
    return from !== undefined && from < to ? [{ from, to }] : []
  })
/** Returns the total length of the pauses of a step, in milliseconds. */
export const pausedMs = (step: Pick<StepView, 'attempts'>): number =>
  pausesOf(step).reduce((sum, { from, to }) => sum + to - from, 0)

const text = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)
const count = (value: unknown): number | undefined =>
  typeof value === 'number' ? value : undefined
const timeOf = (value: string | undefined): number | undefined =>
  value === undefined ? undefined : Date.parse(value)

/** The state of a run, folded from its steps and events. */
export class RunFold {
  readonly steps = new Map<string, StepView>()
  /** The events, oldest first. */
  readonly events: RunEventRecord[] = []
  readonly types = new Set<string>()
  /** The status according to the events; undefined before the first event that sets it. */
  status: string | undefined
  /** Time of `status` in Unix milliseconds. */
  statusAt = 0
  startedAt: number | undefined
  /** Credits that the run has spent; undefined when nothing was recorded. */
  credits: number | undefined
  #newest = 0

  /** Removes everything that was applied. */
  clear(): void {
    this.steps.clear()
    this.events.length = 0
    this.types.clear()
    this.status = this.startedAt = this.credits = undefined
    this.statusAt = this.#newest = 0
  }
  /** Applies records of steps. */
  addRecords(records: readonly RunStep[]): void {
    for (const record of records) this.#addRecord(record)
  }
  /** Applies events of the timeline, oldest first. Events that were already applied are ignored. */
  addEvents(events: readonly RunEventRecord[]): void {
    for (const event of events) {
      if (event.sequence <= this.#newest) continue
      this.#newest = event.sequence
      this.events.push(event)
      this.types.add(event.event_type)
      this.#addEvent(event)
    }
  }

  #step(key: string, kind: unknown, at: number): StepView {
    const known = this.steps.get(key)
    if (known) return known
    const view: StepView = {
      key,
      order: this.steps.size,
      kind: text(kind) ?? '',
      status: 'pending',
      attempt: 1,
      waits: [],
      attempts: [],
      at,
    }
    this.steps.set(key, view)
    return view
  }

  #addRecord(record: RunStep): void {
    const at = Date.parse(record.updated_at)
    const view = this.#step(record.step_key, record.kind, at)
    view.kind = record.kind
    if (record.step_name !== undefined) view.name = record.step_name
    if (at < view.at) return
    const from = timeOf(record.started_at)
    const to = timeOf(record.completed_at)
    const { inputs, result, error_type, error_message, job_id, waiting_on } = record
    const { session_id, agent_turn_id, agent_id, verdict } = record
    Object.assign(view, {
      at,
      status: record.status,
      attempt: record.attempt,
      from,
      to,
      inputs,
      result,
      errorType: error_type,
      error: error_message,
      jobId: job_id,
      waitingOn: waiting_on,
      sessionId: session_id,
      turnId: agent_turn_id,
      agentId: agent_id,
      verdict,
    })
    if (waiting_on?.interaction_id !== undefined) view.interactionId = waiting_on.interaction_id
    if (hasEnded(record.status)) close(view, to ?? at)
  }

  #addEvent({ event_type: type, step_key: key, payload = {}, created_at }: RunEventRecord): void {
    const at = Date.parse(created_at)
    const [subject = '', verb = ''] = type.split('.')
    if (subject === 'run') this.#runEvent(verb, at)
    if (type === 'usage.recorded') {
      const spent = count(payload['credit_spent'])
      if (spent !== undefined) this.credits = spent
    }
    if (key === undefined || subject === 'run') return
    const view = this.#step(key, payload['kind'], at)
    span(view, type, payload, at)
    if (at < view.at) return
    view.at = at
    state(view, type, payload, at)
  }

  #runEvent(verb: string, at: number): void {
    const status = runStatus[verb]
    if (verb === 'started') this.startedAt = at
    if (status === undefined || at < this.statusAt) return
    this.status = status
    this.statusAt = at
  }
}

const runStatus: Readonly<Record<string, string>> = {
  started: 'running',
  suspended: 'suspended',
  resumed: 'running',
  completed: 'completed',
  failed: 'failed',
  cancelled: 'cancelled',
}

/** Ends the open waits and attempts of a step. */
function close(view: StepView, at: number): void {
  for (const wait of view.waits) wait.to ??= at
  for (const attempt of view.attempts) attempt.to ??= at
}

/** Updates the spans of a step from an event. */
function span(view: StepView, type: string, payload: Payload, at: number): void {
  switch (type) {
    case 'step.started':
      view.attempts.push({ number: 1, from: at })
      break
    case 'step.retried': {
      const last = view.attempts.at(-1)
      if (last) {
        last.to ??= at
        const error = text(payload['error_message']) ?? text(payload['error'])
        if (error !== undefined) last.error = error
      }
      view.attempts.push({
        number: count(payload['attempt']) ?? view.attempts.length + 1,
        from: at,
      })
      break
    }
    case 'step.suspended':
    case 'wait.opened': {
      const id = text(payload['wait_id']) ?? ''
      if (view.waits.some((wait) => wait.id === id)) break
      view.waits.push({ id, kind: text(payload['wait_kind']) ?? '', from: at, facts: payload })
      break
    }
    case 'wait.resumed':
    case 'wait.timed_out': {
      const id = text(payload['wait_id'])
      const wait = view.waits.find((one) => (id === undefined ? !one.to : one.id === id))
      if (wait) wait.to = at
      break
    }
    case 'step.completed':
    case 'step.failed':
    case 'step.skipped':
      close(view, at)
      break
    case 'branch.completed':
    case 'branch.failed': {
      const total = count(view.waits.at(-1)?.facts['count']) ?? 0
      view.branches ??= { total, done: 0, failed: 0 }
      view.branches.total = Math.max(total, view.branches.total)
      view.branches[type === 'branch.failed' ? 'failed' : 'done']++
      break
    }
  }
  const links = {
    interactionId: text(payload['interaction_id']),
    jobId: text(payload['job_id']),
    sessionId: text(payload['session_id']),
    turnId: text(payload['turn_id']),
    agentId: text(payload['agent_id']),
    childRunId: payload['wait_kind'] === 'run' ? text(payload['run_id']) : undefined,
  }
  for (const [name, value] of Object.entries(links))
    if (value !== undefined) view[name as keyof typeof links] = value
}

const stepStatus: Readonly<Record<string, string>> = {
  'step.started': 'running',
  'step.suspended': 'suspended',
  'step.resumed': 'running',
  'step.completed': 'completed',
  'step.failed': 'failed',
  'step.skipped': 'skipped',
}

/** Updates the state of a step from an event. */
function state(view: StepView, type: string, payload: Payload, at: number): void {
  const status = stepStatus[type]
  if (status !== undefined) {
    view.status = status
    if (status !== 'suspended') delete view.waitingOn
    if (hasEnded(status)) view.to = at
  }
  switch (type) {
    case 'step.started':
      view.from = at
      break
    case 'step.retried':
      view.attempt = count(payload['attempt']) ?? view.attempt + 1
      if (payload['retry_scope'] !== 'run_recovery') break
      view.status = 'running'
      for (const name of ['to', 'result', 'error', 'errorType'] as const) delete view[name]
      break
    case 'action.called':
      view.inputs = payload['parameters']
      break
    case 'step.completed':
      view.result = payload['output']
      break
    case 'step.failed':
      view.error = text(payload['error']) ?? ''
      view.errorType = text(payload['error_type']) ?? ''
      break
    case 'check.passed':
    case 'check.failed':
      view.verdict = type === 'check.passed' ? 'pass' : 'fail'
      break
  }
}
