/**
 * The row of a project's overview: the current number of runs by status, the waiting interactions,
 * and the activity in a recent period as a series with steps of equal length.
 */
import { type Static, Type } from 'typebox'
import { Closed, Timestamp } from '../common.ts'
import { query } from '../contract.ts'
import { runStatuses } from '../loops/run.ts'

/** Maximum length of the period, in minutes. */
const MAX_OVERVIEW_MINUTES = 7 * 24 * 60
/** Maximum number of different failures in an overview. */
export const MAX_FAILURES = 20
/** Maximum number of waiting interactions that are counted. */
export const MAX_WAITING_COUNTED = 1000

/** The step length (`step`) of a series whose period is at most `up_to`, both in minutes. */
const STEPS = [
  { up_to: 180, step: 1 },
  { up_to: 12 * 60, step: 5 },
  { up_to: 48 * 60, step: 15 },
  { up_to: MAX_OVERVIEW_MINUTES, step: 60 },
] as const
/** Returns the step length of the series for a period of this length. Both are in minutes. */
export const stepOf = (minutes: number): number =>
  STEPS.find(({ up_to }) => minutes <= up_to)?.step ?? 60

const Latency = (share: string) =>
  Type.Optional(
    Type.Number({
      description:
        `Duration in milliseconds that ${share} of the ended runs did not exceed, ` +
        'accurate to 10 %; absent if no run ended',
    }),
  )
const flow = {
  started: Type.Integer({ description: 'Number of runs that were created' }),
  completed: Type.Integer(),
  failed: Type.Integer(),
  cancelled: Type.Integer(),
  p50_ms: Latency('half'),
  p95_ms: Latency('95 %'),
}
const Flow = Type.Object(flow)
/** The counts and latencies of a project's runs in a period. */
export type Flow = Static<typeof Flow>

const Failure = Type.Object({
  error_type: Type.String(),
  step_key: Type.Optional(Type.String({ description: 'Key of the step that failed' })),
  definition_id: Type.Optional(Type.String({ description: 'Id of the workflow' })),
  loop_id: Type.Optional(Type.String()),
  count: Type.Integer(),
  last_run_id: Type.String(),
  last_failed_at: Timestamp,
})
/** A group of failed runs with the same error, the same workflow or loop, and the same step. */
export type Failure = Static<typeof Failure>

export const RunCounts = Type.Object(
  Object.fromEntries(runStatuses.map((status) => [status, Type.Integer()])) as {
    readonly [S in (typeof runStatuses)[number]]: ReturnType<typeof Type.Integer>
  },
)
export type RunCounts = Static<typeof RunCounts>

export const Overview = Type.Object({
  generated_at: Timestamp,
  period_start: Timestamp,
  minutes: Type.Integer(),
  step_seconds: Type.Integer({ description: 'Seconds that each element of the series covers' }),
  runs: RunCounts,
  interactions: Type.Object({
    waiting: Type.Integer({
      description:
        'Number of interactions that are pending or in review and that the caller may read',
    }),
    for_me: Type.Integer({
      description: 'Number of interactions that the caller may answer or review',
    }),
    at_least: Type.Boolean({
      description:
        'Whether there may be more interactions than counted; ' +
        `counting ends at ${MAX_WAITING_COUNTED}`,
    }),
  }),
  period: Flow,
  failures: Type.Array(Failure, {
    description: `The most frequent failures of the period, at most ${MAX_FAILURES}`,
  }),
  series: Type.Array(Type.Object({ at: Timestamp, ...flow }), {
    description: 'Numbers and latencies per interval, oldest first',
  }),
})
export type Overview = Static<typeof Overview>

export const overview = {
  'overview.get': query('GET /projects/:project/overview', {
    summary: 'Runs by status, waiting interactions, failures, and a series of the last minutes',
    tag: 'overview',
    permission: 'project.view',
    viewer: true,
    query: Closed({
      minutes: Type.Optional(
        Type.Integer({
          minimum: 1,
          maximum: MAX_OVERVIEW_MINUTES,
          default: 60,
          description:
            'Length of the period in minutes; the series of a longer period has longer intervals',
        }),
      ),
    }),
    reply: Overview,
  }),
} as const
