/**
 * The row that returns the times at which a schedule would fire, so that clients can check a
 * schedule before they save it.
 */
import { Type } from 'typebox'
import { Closed, Timestamp } from '../common.ts'
import { query } from '../contract.ts'

export const schedules = {
  'schedule.next': query('GET /projects/:project/schedules/next', {
    summary: 'The next times at which a schedule would fire',
    answeredBy: 'gateway',
    tag: 'loops',
    permission: 'project.view',
    query: Closed({
      cron: Type.Optional(
        Type.String({
          minLength: 1,
          maxLength: 256,
          description:
            'Cron expression with five fields, or a descriptor such as @daily; give either cron ' +
            'or interval',
        }),
      ),
      interval: Type.Optional(
        Type.String({
          minLength: 1,
          maxLength: 64,
          description: 'Interval from now, as a duration such as 15m; at least 10s',
        }),
      ),
      timezone: Type.Optional(
        Type.String({
          minLength: 1,
          maxLength: 64,
          description: 'IANA name of the time zone; UTC by default; only with cron',
        }),
      ),
      since: Type.Optional(
        Type.String({
          format: 'date-time',
          description: 'Time after which the schedule is evaluated; the present time by default',
        }),
      ),
      count: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, default: 5 })),
    }),
    reply: Type.Object({
      times: Type.Array(Timestamp, {
        description: 'Times, earliest first; fewer than requested if the schedule ends',
      }),
    }),
  }),
} as const
