/** Names of source events: what they look like, which of them a trigger, a wait or a client may name, and which fit a pattern. */
import type { FieldError } from '../errors.ts'
import { isProvider } from './integrations.ts'

/**
 * The grammar of event types, for publishing, triggers, waits and webhooks alike: segments of letters, digits, `_` and `-`,
 * joined by dots; one segment is enough. A family ends in `.*`. Signals have a grammar of their own.
 */
const MAX_LENGTH = 128
/** Same alphabet as the names of signals that can be sent. */
const SIGNAL = /^signal\.[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/
const EXACT = /^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$/
const PATTERN = /^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*\.\*$/
/** Events that the service sends to itself. */
const internal: ReadonlySet<string> = new Set([
  'interaction.http_subscriber.dispatch',
  'loop.http_trigger.received',
  'loop.run_allocation.completed',
  'loop.run_allocation.failed',
  'loop.schedule.tick',
  'loop_run.continue',
  'loop_run.resume',
  'run.progress_initial',
  'run.resume',
  'schedule.tick',
])
/**
 * The events that this release publishes itself, besides signals: the only ones of its own prefixes that the catalog calls ready.
 * Producers take their types from here (`ServicePublication`), so what is published is in the catalog.
 */
const emitted = [
  'check.passed',
  'check.failed',
  'email.received',
  'http_trigger.received',
  'interaction.created',
  'interaction.resolved',
  'loop.auto_paused',
  'run.completed',
  'run.failed',
  'run.cancelled',
  'run.budget_exceeded',
  'run.progress_stalled',
  'session.message.created',
] as const
/** The type of an event that this release publishes itself. */
export type EmittedType = (typeof emitted)[number]
export const emittedTypes: ReadonlySet<string> = new Set<EmittedType>(emitted)

/** Beginnings of the names of events that the service publishes itself, each with the words of the catalog. */
export const capabilities: Readonly<Record<string, string>> = {
  artifact: 'Artifacts',
  check: 'Checks',
  email: 'E-mail',
  http_trigger: 'HTTP triggers',
  interaction: 'Interactions',
  loop: 'Loops',
  run: 'Runs',
  session: 'Sessions',
  table: 'Tables',
}
/** Beginnings that nobody can use: for signals, for what the service does inside, and for what it may do later. */
export const reservedPrefixes: Readonly<Record<string, 'capability' | 'utility'>> = {
  signal: 'capability',
  loop_run: 'capability',
  schedule: 'capability',
  channel: 'capability',
  test: 'utility',
}

const isExact = (event_type: string): boolean =>
  event_type.length <= MAX_LENGTH && EXACT.test(event_type)
const isFamily = (event_type: string): boolean =>
  event_type.length <= MAX_LENGTH && PATTERN.test(event_type)
const isSignal = (event_type: string): boolean => event_type.startsWith('signal.')
/** Whether an event is one that the service sends to itself: nobody else is told of it. */
export const isInternal = (event_type: string): boolean => internal.has(event_type)
/** Whether an event is for waits of one run, or for nobody: then no trigger and no pattern fits it. */
export const isPrivate = (event_type: string): boolean =>
  isSignal(event_type) || internal.has(event_type)
/** Whether an event of this type fits an exact type or a pattern such as `table.row.*`. */
export const fitsType = (pattern: string, event_type: string): boolean =>
  pattern.endsWith('.*')
    ? event_type.startsWith(pattern.slice(0, -1)) && !isPrivate(event_type)
    : pattern === event_type

/**
 * Whether something may publish an event of this type or pattern. The service publishes what it emits; every other type is the
 * business of clients and providers.
 */
export function isPublishable(pattern: string): boolean {
  const prefix = pattern.slice(0, Math.max(0, pattern.indexOf('.')))
  if (!Object.hasOwn(capabilities, prefix) && !Object.hasOwn(reservedPrefixes, prefix)) return true
  return [...emittedTypes].some((event_type) => fitsType(pattern, event_type))
}

/** Faults of the type that a trigger or a wait names. Only a wait may name a signal. */
export function checkEventType(
  event_type: string,
  field: string,
  by: 'trigger' | 'wait',
): FieldError[] {
  if (internal.has(event_type))
    return [
      {
        field,
        message: `is an event that the service sends to itself; nobody can ${by === 'wait' ? 'wait for' : 'be triggered by'} it`,
        actual: event_type,
      },
    ]
  if (isSignal(event_type)) {
    if (by === 'trigger')
      return [{ field, message: 'is a signal; signals only resume runs', actual: event_type }]
    return SIGNAL.test(event_type)
      ? []
      : [
          {
            field,
            message: 'is not the exact name of a signal, such as signal.approved',
            actual: event_type,
          },
        ]
  }
  return isExact(event_type) || isFamily(event_type)
    ? []
    : [
        {
          field,
          message: `is not the type of an event, such as table.row.inserted or table.row.*, of at most ${MAX_LENGTH} characters`,
          actual: event_type,
        },
      ]
}

/** Faults of the type of an event that a client publishes: it must not look like one of the service's own. */
export function checkCustomType(event_type: string, field: string): FieldError[] {
  const prefix = event_type.slice(0, Math.max(0, event_type.indexOf('.')))
  if (!isExact(event_type))
    return [
      {
        field,
        message: `must be segments of letters, digits, _ and - joined by dots, such as order.paid, of at most ${MAX_LENGTH} characters`,
        actual: event_type,
      },
    ]
  if (internal.has(event_type))
    return [{ field, message: 'is an event that the service sends to itself', actual: event_type }]
  // An event of a provider is signed by the provider; a client that publishes one would imitate it.
  const owner =
    Object.hasOwn(capabilities, prefix) || Object.hasOwn(reservedPrefixes, prefix)
      ? 'the service itself'
      : isProvider(prefix)
        ? `the integration ${prefix}`
        : undefined
  return owner === undefined
    ? []
    : [
        {
          field,
          message: `begins with ${prefix}., which is for events of ${owner}`,
          actual: event_type,
        },
      ]
}

/** Faults of the types that a webhook listens to: exact ones, families, signals, or `*` for every event. */
export const checkHookTypes = (events: readonly string[], field: string): FieldError[] =>
  events.flatMap((event_type, index) =>
    event_type === '*' || isExact(event_type) || isFamily(event_type) || SIGNAL.test(event_type)
      ? []
      : [
          {
            field: `${field}[${index}]`,
            message: `is not the type of an event, such as run.failed, run.* or *, of at most ${MAX_LENGTH} characters`,
            actual: event_type,
          },
        ],
  )
