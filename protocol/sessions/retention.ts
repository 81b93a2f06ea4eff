/** The schema of the setting that determines how long a session is retained. */
import { type Static, Type } from 'typebox'
import { Closed } from '../common.ts'

export const Retention = Closed({
  mode: Type.Enum(['standard', 'bounded']),
  ttl_seconds: Type.Optional(
    Type.Integer({
      minimum: 3600,
      maximum: 2_592_000,
      description:
        'Idle time in seconds after which the transcript is pruned; required for bounded',
    }),
  ),
})
export type Retention = Static<typeof Retention>
