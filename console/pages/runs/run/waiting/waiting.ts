/**
 * Describes why a run makes no progress, and what a person can do about it, from the waits of its
 * steps and the reason that the service reports. This module needs no browser.
 */
import type { WaitingOn } from '../../../../../protocol/runs/waiting.ts'
import type { StepView, WaitSpan } from '../data/fold.ts'
import { waitingText as text } from './text.ts'

/** What a person can do about a wait. */
export type NextStep =
  | { readonly kind: 'answer'; readonly interactionId: string }
  | { readonly kind: 'signal'; readonly name: string }
  | { readonly kind: 'event'; readonly type: string }
  | { readonly kind: 'workers'; readonly queue: string }
  | { readonly kind: 'run'; readonly runId: string }
  | { readonly kind: 'session'; readonly sessionId: string }
  | { readonly kind: 'resume' }

/** A reason why a run makes no progress. */
export interface Reason {
  /** A sentence without its final full stop. */
  readonly sentence: string
  /** A second sentence, with the cause of the wait. */
  readonly detail?: string
  /** Unix milliseconds. */
  readonly since?: number
  readonly until?: number
  readonly steps: readonly string[]
  readonly next?: NextStep
}

/** Maximum number of steps that are named for one reason. */
const MAX_NAMED = 3

const namesOf = (steps: readonly StepView[]): string => {
  const names = steps.slice(0, MAX_NAMED).map(({ key, name }) => name ?? key)
  return text.steps(names, steps.length - names.length)
}

/** Returns the targets of a question as text: names of people, and roles. */
export function targetsOf(targets: unknown, nameOf: (id: string) => string): string {
  const list = Array.isArray(targets) ? targets.map(String) : []
  return text.either(
    list.map((target) =>
      target.startsWith('role:') ? text.role(target.slice('role:'.length)) : nameOf(target),
    ),
  )
}

interface Open {
  readonly step: StepView
  readonly wait: WaitSpan | undefined
  readonly on: WaitingOn | undefined
}
/** Returns the key of a wait. One sentence describes all waits with the same key. */
const alike = ({ step, wait, on }: Open): string => {
  const kind = on?.kind ?? wait?.kind ?? ''
  const facts = wait?.facts ?? {}
  if (kind === 'worker' || kind === 'lease')
    return `${kind} ${on?.queue ?? String(facts['queue'])} ${on?.worker_instance_id ?? ''}`
  if (kind === 'signal' || kind === 'event')
    return `${kind} ${facts['event_type'] ?? on?.event_type}`
  return step.key
}

/**
 * Returns the reasons why a run makes no progress. Reasons that a person can act on come first.
 * @param run the status of the run, and the reason why it waits according to the service.
 * @param nameOf returns the name of a principal.
 */
export function reasonsOf(
  run: { readonly status: string; readonly waitingOn?: WaitingOn | undefined },
  steps: Iterable<StepView>,
  nameOf: (id: string) => string,
): readonly Reason[] {
  const { waitingOn } = run
  if (run.status === 'queued' || waitingOn?.kind === 'concurrency' || waitingOn?.kind === 'cancel')
    return [
      {
        sentence: waitingOn?.kind === 'cancel' ? text.cancel : text.queued,
        ...detailOf(waitingOn),
        steps: waitingOn?.step_key === undefined ? [] : [waitingOn.step_key],
      },
    ]
  const open: Open[] = []
  for (const step of steps) {
    if (step.status !== 'suspended') continue
    const wait = step.waits.findLast(({ to }) => to === undefined)
    const on = step.waitingOn ?? (waitingOn?.step_key === step.key ? waitingOn : undefined)
    // A step that waits for its branches is not a reason itself. The waits in its branches are.
    if ((wait?.kind ?? on?.kind) !== 'branches') open.push({ step, wait, on })
  }
  const groups = new Map<string, Open[]>()
  for (const one of open) {
    const group = groups.get(alike(one))
    if (group) group.push(one)
    else groups.set(alike(one), [one])
  }
  return [...groups.values()]
    .map((group) => reasonOf(group, nameOf))
    .sort((a, b) => rank(a) - rank(b))
}
/** Returns the sort key of a reason. Reasons that a person can act on come first. */
const rank = ({ next }: Reason): number =>
  next === undefined ? 2 : next.kind === 'run' || next.kind === 'session' ? 1 : 0

/**
 * Returns the cause of a wait as a second sentence (`detail`), or an empty object if the service
 * reports no cause.
 */
function detailOf(on: WaitingOn | undefined, error?: string): { readonly detail?: string } {
  const detail = on && sentenceOf(on, error)
  return detail === undefined ? {} : { detail }
}
function sentenceOf(on: WaitingOn, error: string | undefined): string | undefined {
  const { kind, cause, worker_instance_id: worker, able_workers, action_name, environment_id } = on
  if (kind === 'cancel') return worker === undefined ? text.stopping : text.stoppingWorker(worker)
  if (kind === 'retry') return error === undefined ? undefined : text.lastError(error)
  switch (cause) {
    case 'environment':
      return text.environment(environment_id ?? '')
    case 'executor':
      return text.executor
    case 'slot':
      return text.slot(able_workers ?? 0)
    case 'no_worker':
      if (action_name === undefined) return undefined
      return environment_id === undefined
        ? text.noWorker(action_name)
        : text.noWorkerIn(action_name, environment_id)
    default:
      return undefined
  }
}

function reasonOf(group: readonly Open[], nameOf: (id: string) => string): Reason {
  const steps = group.map(({ step }) => step)
  const { step, wait, on } = group[0] as Open
  const facts = wait?.facts ?? {}
  const kind = on?.kind ?? wait?.kind ?? ''
  const about = { steps: steps.map(({ key }) => key) }
  const begin = wait?.from ?? step.from
  const since = begin === undefined ? {} : { since: begin }
  const deadline = on?.until ?? facts['deadline']
  const until = typeof deadline === 'string' ? { until: Date.parse(deadline) } : {}
  const detail = detailOf(on, step.attempts.findLast(({ error }) => error !== undefined)?.error)
  const names = namesOf(steps)
  switch (kind) {
    case 'interaction': {
      const id = on?.interaction_id ?? step.interactionId
      return {
        sentence: text.interaction(names, targetsOf(facts['targets'], nameOf)),
        ...about,
        ...since,
        ...until,
        ...(id !== undefined && { next: { kind: 'answer', interactionId: id } }),
      }
    }
    case 'worker': {
      const queue = on?.queue ?? (typeof facts['queue'] === 'string' ? facts['queue'] : '')
      if (on === undefined)
        return { sentence: text.action(names, steps.length), ...about, ...since }
      return {
        sentence: text.worker(names, queue, steps.length),
        ...detail,
        ...about,
        ...since,
        next: { kind: 'workers', queue },
      }
    }
    case 'lease':
      return {
        sentence: text.lease(names, on?.worker_instance_id ?? '', steps.length),
        ...about,
        ...since,
      }
    case 'timer':
      return {
        sentence: text.timer(names),
        ...about,
        ...since,
        ...until,
        next: { kind: 'resume' },
      }
    case 'retry':
      return { sentence: text.retry(names), ...detail, ...about, ...until }
    case 'signal':
    case 'event': {
      const type = String(facts['event_type'] ?? on?.event_type ?? '')
      const name = type.startsWith('signal.') ? type.slice('signal.'.length) : undefined
      return {
        sentence: name === undefined ? text.event(names, type) : text.signal(names, name),
        ...about,
        ...since,
        ...until,
        next: name === undefined ? { kind: 'event', type } : { kind: 'signal', name },
      }
    }
    case 'run':
      return {
        sentence: text.run(names),
        ...about,
        ...since,
        ...(step.childRunId !== undefined && { next: { kind: 'run', runId: step.childRunId } }),
      }
    case 'agent':
      return {
        sentence: text.agent(names),
        ...about,
        ...since,
        ...(step.sessionId !== undefined && {
          next: { kind: 'session', sessionId: step.sessionId },
        }),
      }
    default:
      return { sentence: text.other(names), ...detail, ...about, ...since }
  }
}
