/**
 * The log lines that workers print for their jobs: the frame of the worker socket, the stored form,
 * and the row. Lines are kept outside of the journal, for a limited time and in limited amounts.
 * They may be lost in a crash. No decision depends on them.
 */
import { type Static, Type } from 'typebox'
import { Closed, Id, JsonObject, paging, Timestamp } from '../common.ts'
import { stream } from '../contract.ts'

/** The levels of log lines, least severe first. */
export const logLevels = ['debug', 'info', 'warn', 'error'] as const
export type LogLevel = (typeof logLevels)[number]

/**
 * Limits of log lines, in bytes of UTF-8 unless stated otherwise. Settings define the limits per
 * job, per run and in total.
 */
export const logLimits = {
  /**
   * Maximum size of the text of a line. A longer text is cut, and the line is marked as
   * `truncated`.
   */
  text: 8192,
  /**
   * Maximum size of `fields` as JSON. Larger fields are omitted, and the line is marked as
   * `truncated`.
   */
  fields: 8192,
  /** Maximum number of lines in a frame, and in a stored batch. */
  lines: 1000,
  /** Maximum size of a stored batch. A batch has at least one line. */
  batch: 256 * 1024,
  /**
   * Maximum total size of the lines of one job that are not stored yet. Further lines are dropped.
   */
  waiting: 1_048_576,
  /** Maximum length of the text to search for, in characters. */
  contains: 256,
} as const

const message_id = Type.Optional(Type.String({ minLength: 1, maxLength: 128 }))
const Level = Type.Enum([...logLevels])

/** The name of the frame, which `worker.register` and `worker.registered` list in `frames`. */
export const LOG_FRAME = 'job.log'
/** The frame that carries log lines on the worker socket. It is not acknowledged. */
export const logUp = {
  [LOG_FRAME]: Type.Object({
    type: Type.Literal(LOG_FRAME),
    message_id,
    job_id: Type.String(),
    lease_token: Type.String(),
    lines: Type.Array(
      Type.Object({
        at: Type.Optional(
          Type.String({
            description:
              'Time of the line (RFC 3339); by default, the time at which the frame arrives',
          }),
        ),
        level: Type.Optional(Level),
        text: Type.String(),
        fields: Type.Optional(JsonObject),
      }),
      {
        minItems: 1,
        maxItems: logLimits.lines,
        description: 'Lines, oldest first; the default level is info',
      },
    ),
  }),
} as const
export type LogFrame = Static<(typeof logUp)['job.log']>

/** A line as it is stored. */
export interface LogLine {
  readonly at: string
  readonly level: LogLevel
  readonly text: string
  readonly fields?: JsonObject
  readonly truncated?: true
}
/** A batch of log lines from one attempt of a job, as stored. */
export interface LogBatch {
  readonly job_id: string
  readonly attempt: number
  readonly step_key?: string
  readonly worker_instance_id: string
  readonly lines: readonly LogLine[]
}
/** A batch with its sequence in the store. Sequences increase within a run. */
export interface NumberedBatch extends LogBatch {
  readonly sequence: number
}

/**
 * Number of positions per batch. The position of a line is sequence × `POSITIONS_PER_BATCH` +
 * index.
 */
const POSITIONS_PER_BATCH = 1000
/** Returns the position of a line: an integer that increases within a run. */
export const positionOf = (sequence: number, index: number): number =>
  sequence * POSITIONS_PER_BATCH + index
/** Returns the sequence of the batch that contains a position. */
export const sequenceOf = (position: number): number => Math.floor(position / POSITIONS_PER_BATCH)

export const RunLogLine = Type.Object({
  sequence: Type.Integer({ description: 'Position of the line; increases within the run' }),
  at: Timestamp,
  level: Level,
  text: Type.String(),
  fields: Type.Optional(JsonObject),
  truncated: Type.Optional(
    Type.Literal(true, {
      description: 'Whether the text was shortened or the fields were removed',
    }),
  ),
  job_id: Type.String(),
  attempt: Type.Integer(),
  step_key: Type.Optional(Type.String()),
  worker_instance_id: Type.String(),
})
export type RunLogLine = Static<typeof RunLogLine>
export const RunLogPage = Type.Object({
  items: Type.Array(RunLogLine),
  has_more: Type.Boolean(),
  next_after: Type.Integer({ description: 'The value of `after` for the next page' }),
})
export type RunLogPage = Static<typeof RunLogPage>

/** The schemas of the filters of log lines. */
export const LogFilter = {
  step_key: Type.Optional(Type.String({ minLength: 1, maxLength: 512 })),
  job_id: Type.Optional(Id),
  level: Type.Optional(
    Type.Enum([...logLevels], {
      description: 'Only lines of this level or of a more severe level',
    }),
  ),
  contains: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: logLimits.contains,
      description: 'Only lines whose text contains this text, regardless of case',
    }),
  ),
}
/** The filters of log lines. A line must match every given filter. */
export interface LogFilters {
  readonly step_key?: string
  readonly job_id?: string
  readonly level?: LogLevel
  readonly contains?: string
}

export const logRows = {
  'run.logs': stream('GET /projects/:project/runs/:id/logs', {
    summary: 'The lines that the workers of a run printed: a page of JSON, or a stream',
    locateBy: 'run',
    answeredBy: 'gateway',
    tag: 'runs',
    permission: 'project.view',
    stream: 'accept',
    query: Closed({
      after: Type.Optional(
        Type.Integer({
          minimum: 0,
          description:
            'Position after which the page begins, in the order of the list. A page may be short ' +
            'or empty although has_more is true',
        }),
      ),
      limit: paging.limit,
      order: Type.Optional(
        Type.Enum(['asc', 'desc'], {
          default: 'asc',
          description: 'Order of the lines; streams are always ascending',
        }),
      ),
      ...LogFilter,
    }),
    reply: RunLogPage,
    errors: ['not_found'],
  }),
} as const
