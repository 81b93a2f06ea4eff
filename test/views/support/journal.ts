/**
 * Builds journals for tests: commits of a few entries, with the sequences and predecessors that a
 * shard host would assign.
 */

import { type JsonObject, timestamp } from '../../../protocol/common.ts'
import {
  type Credential,
  cursorOf,
  type Entry,
  type Envelope,
  type Event,
  type Kind,
  type Principal,
} from '../../../protocol/entry.ts'
import type { Job, LeaseGrant, QueueEvent } from '../../../protocol/jobs/rows.ts'
import type { Patch } from '../../../protocol/patch.ts'
import type { RunEvent } from '../../../protocol/runs/events.ts'
import type { RunStep, WorkflowRun } from '../../../protocol/runs/schema.ts'
import type { Registration } from '../../../protocol/workers/socket.ts'
import type { Spec } from '../../../protocol/workflows/spec.ts'
import { type Message, View } from '../../../views/view.ts'

export const T0 = Date.UTC(2031, 1, 3, 4, 5, 6)
export const at = (seconds: number): string => timestamp(T0 + seconds * 1000)

/** An entry without its position. `at`: seconds after T0. */
export interface Draft {
  readonly kind: Kind
  readonly project: string
  readonly id: string
  readonly events: readonly Event[]
  readonly at?: number
  readonly principal?: Principal
  readonly credential?: Credential
  readonly request_id?: string
  readonly ip?: string
  readonly user_agent?: string
}
export interface Written extends Message {
  readonly data: Envelope
  readonly message_id: string
}
const user: Principal = { type: 'user', id: 'user_1', name: 'Ada' }

/** A journal of one partition. `first`: the sequence of its first message. */
export class Journal {
  readonly messages: Written[] = []
  #tails = new Map<number, number>()
  #actors = new Map<string, number>()
  #next: number
  constructor(first = 1) {
    this.#next = first
  }
  /** Commits entries as one message of a shard. */
  commit(shard: number, ...drafts: readonly Draft[]): Written {
    const sequence = this.#next++
    let index = 0
    const entries = drafts.map(
      ({
        kind,
        project,
        id,
        events,
        at = 0,
        principal = user,
        credential,
        request_id,
        ip,
        user_agent,
      }): Entry => {
        const key = `${kind}/${project}/${id}`
        const prev = this.#actors.get(key) ?? 0
        if (events.length > 0) this.#actors.set(key, cursorOf(sequence, index + events.length - 1))
        index += events.length
        return {
          kind,
          project,
          id,
          events,
          prev,
          command: { id: `cmd_${sequence}_${index}`, name: 'test' },
          origin: {
            at: T0 + at * 1000,
            principal,
            ...(credential && { credential }),
            ...(request_id && { request_id }),
            ...(ip && { ip }),
            ...(user_agent && { user_agent }),
          },
        }
      },
    )
    const written = {
      sequence,
      message_id: `m${sequence}`,
      data: { v: 1 as const, epoch: 1, prev: this.#tails.get(shard) ?? 0, entries },
    }
    this.#tails.set(shard, sequence)
    this.messages.push(written)
    return written
  }
}

export const spec: Spec = {
  steps: [{ id: 'mail', kind: 'action', config: { action_name: 'send_mail' } }],
}
type Parts = Omit<RunEvent, 'type'>
export const event = (type: RunEvent['type'], parts: Parts = {}): RunEvent => ({ type, ...parts })
export const run = (id: string, events: readonly RunEvent[], more: Partial<Draft> = {}): Draft => ({
  kind: 'run',
  project: 'prj_a',
  id,
  events,
  ...more,
})
/** Returns the initial record of a run. `seconds`: its time of creation, in seconds after T0. */
export const born = (
  id: string,
  seconds: number,
  fields: Partial<WorkflowRun> = {},
): WorkflowRun => ({
  id,
  status: 'queued',
  definition_id: '',
  definition_version: 0,
  cancel_requested: false,
  queue: 'default',
  created_at: at(seconds),
  updated_at: at(seconds),
  ...fields,
})
export const started = (
  id: string,
  seconds: number,
  fields: Partial<WorkflowRun> = {},
  more: Partial<Draft> = {},
): Draft =>
  run(id, [event('run.created', { run: born(id, seconds, fields), spec })], {
    at: seconds,
    ...more,
  })
/** Returns an entry that changes a run's status. */
export const moved = (
  id: string,
  status: WorkflowRun['status'],
  fields: Patch<WorkflowRun> = {},
  more: Partial<Draft> = {},
): Draft =>
  run(
    id,
    [
      event(
        status === 'running'
          ? 'run.started'
          : status === 'queued'
            ? 'run.resumed'
            : `run.${status}`,
        { run: { status, ...fields }, payload: { status } },
      ),
    ],
    more,
  )
export const stepBorn = (
  runId: string,
  key: string,
  seq: number,
  fields: Partial<RunStep> = {},
): RunStep => ({
  id: `${runId}:${key}`,
  run_id: runId,
  step_key: key,
  kind: 'action',
  status: 'running',
  seq,
  attempt: 1,
  created_at: at(0),
  updated_at: at(0),
  ...fields,
})

export const jobBorn = (
  id: string,
  runId: string,
  seconds: number,
  fields: Partial<Job> = {},
): Job => ({
  id,
  kind: 'action_execution',
  origin: 'loop_action_step',
  executor_kind: 'customer_worker',
  queue: 'default',
  status: 'queued',
  action_name: 'send_mail',
  run_id: runId,
  step_key: 'mail',
  claim_attempt: 0,
  max_attempts: 3,
  cancel_requested: false,
  created_at: at(seconds),
  updated_at: at(seconds),
  ...fields,
})
export const queue = (events: readonly QueueEvent[], more: Partial<Draft> = {}): Draft => ({
  kind: 'queue',
  project: 'prj_a',
  id: '0.default',
  events,
  ...more,
})
export const queued = (job: Job): QueueEvent => ({
  type: 'job.queued',
  id: job.id,
  job,
  header: {
    id: job.id,
    kind: job.kind,
    origin: job.origin,
    executor_kind: job.executor_kind,
    priority: 0,
    fairness_key: '',
    enqueued_at: T0,
    max_attempts: 3,
    max_losses: 3,
  },
})
export const claimed = (
  id: string,
  session: string,
  instance: string,
  seconds: number,
): QueueEvent => {
  const lease: LeaseGrant = {
    token: 'lt_1',
    attempt: 1,
    session,
    instance,
    gateway: 'g1',
    expires_at: T0 + seconds * 1000,
  }
  return {
    type: 'job.claimed',
    id,
    lease,
    job: {
      status: 'claimed',
      claim_attempt: 1,
      worker_instance_id: instance,
      lease_expires_at: at(seconds),
    },
  } as QueueEvent
}
export const ended = (
  id: string,
  status: 'completed' | 'failed' | 'cancelled',
  fields: Patch<Job> = {},
): QueueEvent => ({ type: `job.${status}`, id, job: { status, lease_expires_at: null, ...fields } })

const registration = (instance: string, fields: Partial<Registration> = {}): Registration => ({
  instance,
  session: `wst_${instance}`,
  token_hash: 'h',
  generation: 1,
  gateway: 'g1',
  principal_id: 'svc_1',
  concurrency_limit: 4,
  capabilities: [],
  queues: [],
  action_names: [],
  models: [],
  connected_at: T0,
  ...fields,
})
export const worker = (
  instance: string,
  events: readonly Event[],
  more: Partial<Draft> = {},
): Draft => ({ kind: 'worker', project: 'prj_a', id: `wrk_${instance}`, events, ...more })
export const registered = (
  instance: string,
  fields: Partial<Registration> = {},
  more: Partial<Draft> = {},
): Draft =>
  worker(
    instance,
    [{ type: 'worker.registered', registration: registration(instance, fields) } as Event],
    more,
  )

/** Queries a view. The type of the answer is not checked. */
export const ask = <T = Answer>(
  view: View,
  name: string,
  input: JsonObject = {},
  project = 'prj_a',
): T => view.ask(name, project, input) as T
export interface Answer {
  readonly items: readonly JsonObject[]
  readonly position?: readonly (string | number)[]
  readonly refused?: string
}
export const each = (answer: Answer, field: string): unknown[] =>
  answer.items.map((item) => item[field])
/** Commits each draft separately, and returns a view of them at `T0`. */
export function viewOf(...drafts: readonly Draft[]): View {
  const journal = new Journal()
  for (const draft of drafts) journal.commit(0, draft)
  const view = View.open(':memory:', { now: () => T0 })
  view.apply(journal.messages)
  return view
}
/** Returns the ids of the runs in a list. */
export const runIds = (view: View, input: object, project?: string): unknown[] =>
  each(ask(view, 'run.list', { ...input }, project), 'id')
