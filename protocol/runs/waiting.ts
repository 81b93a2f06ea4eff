/** The schema of the reason why a run, step or job makes no progress. */
import { type Static, Type } from 'typebox'
import { Timestamp } from '../common.ts'

export const WaitingOn = Type.Object({
  kind: Type.Enum([
    'timer',
    'signal',
    'event',
    'worker',
    'lease',
    'retry',
    'concurrency',
    'cancel',
    'interaction',
    'branches',
    'run',
    'agent',
  ]),
  reason: Type.String({ description: 'Explanation for people, in one sentence' }),
  cause: Type.Optional(
    Type.Enum(['environment', 'executor', 'slot', 'no_worker'], {
      description:
        'Why the job of kind `worker` is not claimed: its environment has not admitted it, or an ' +
        'executor of the service or a worker has no free slot, or no connected worker accepts it',
    }),
  ),
  able_workers: Type.Optional(
    Type.Integer({ description: 'With the cause `slot`: connected workers that accept the job' }),
  ),
  until: Type.Optional(Timestamp),
  step_key: Type.Optional(Type.String()),
  job_id: Type.Optional(Type.String()),
  queue: Type.Optional(Type.String()),
  action_name: Type.Optional(Type.String()),
  environment_id: Type.Optional(Type.String()),
  worker_instance_id: Type.Optional(Type.String()),
  event_type: Type.Optional(Type.String()),
  interaction_id: Type.Optional(Type.String()),
})
export type WaitingOn = Static<typeof WaitingOn>
