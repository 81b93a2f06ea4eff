/** The row for the times at which a schedule would fire, to check it before it is saved. */
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
          description: 'Five fields, or a descriptor such as @daily; either this or interval',
        }),
      ),
      interval: Type.Optional(
        Type.String({
          minLength: 1,
          maxLength: 64,
          description: 'A duration such as 15m, counted from now; at least 10s',
        }),
      ),
      timezone: Type.Optional(
        Type.String({ minLength: 1, maxLength: 64, description: 'UTC by default; with cron only' }),
      ),
      since: Type.Optional(Type.String({ format: 'date-time', description: 'Now by default' })),
      count: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, default: 5 })),
    }),
    reply: Type.Object({
      times: Type.Array(Timestamp, {
        description: 'Earliest first; fewer than asked for when the schedule ends',
      }),
    }),
  }),
} as const
