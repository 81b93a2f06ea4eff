/**
 * The bodies of the commands of runs, with the checks that a schema cannot express. The bodies of
 * bulk commands with a filter are in `bulk.ts`.
 */
import { type Static, Type } from 'typebox'
import { Closed, Id, JsonObject, QueueName } from '../common.ts'
import { checkSpec, Spec } from '../workflows/spec.ts'

const start = {
  input: Type.Optional(JsonObject),
  config: Type.Optional(JsonObject),
  metadata: Type.Optional(JsonObject),
  queue: Type.Optional(QueueName),
  workflow_type: Type.Optional(Type.String({ minLength: 1, maxLength: 128 })),
  external_id: Type.Optional(Type.String({ minLength: 1, maxLength: 256 })),
  parent_run_id: Type.Optional(Id),
  idempotency_key: Type.Optional(
    Type.String({
      maxLength: 255,
      description:
        'Key that marks repeats: a second start with the same key returns the same run while it ' +
        'is active, and 409 afterwards',
    }),
  ),
  priority: Type.Optional(
    Type.Integer({
      minimum: -1000,
      maximum: 1000,
      description:
        'Priority of the jobs of the run: jobs with a higher priority are offered first; 0 by ' +
        'default',
    }),
  ),
  fairness_key: Type.Optional(
    Type.String({
      maxLength: 128,
      description:
        'Jobs with different keys share a queue equally; jobs with the same key are offered ' +
        'oldest first',
    }),
  ),
}
export const StartRun = Closed({
  definition_id: Type.Optional(Id),
  spec: Type.Optional(Spec),
  ...start,
})
export const StartWorkflowRun = Closed({ definition_id: Type.Optional(Id), ...start })

export const BulkRunRequest = Closed({
  run_ids: Type.Array(Id, { minItems: 1, maxItems: 200 }),
  reason: Type.Optional(Type.String({ maxLength: 1024 })),
})
export const Reason = Closed({ reason: Type.Optional(Type.String({ maxLength: 1024 })) })
export const Recover = Closed({
  reason: Type.Optional(Type.String({ maxLength: 1024 })),
  budget_usd: Type.Optional(Type.Number({ minimum: 0 })),
  credit_budget: Type.Optional(Type.Integer({ minimum: 1 })),
  max_agent_turns: Type.Optional(Type.Integer({ minimum: 1 })),
  wall_clock_extend_seconds: Type.Optional(Type.Integer({ minimum: 1 })),
})
export const Retry = Closed({
  ...Recover.properties,
  from_step: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 128,
      description:
        'Key of a step that the run has reached: this step and all later steps are executed ' +
        'again, earlier steps keep their outputs',
    }),
  ),
  input: Type.Optional(
    Type.Record(Type.String(), Type.Unknown(), {
      description:
        'New input of the run, which the repeated steps and all later steps use. It is validated ' +
        'as at a start. Not available for runs of loops and for direct calls of actions',
    }),
  ),
})
export const Signal = Closed({
  name: Type.Optional(Type.String({ pattern: '^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$' })),
  payload: Type.Optional(JsonObject),
  idempotency_key: Type.Optional(
    Type.String({
      maxLength: 255,
      description:
        'Key that marks repeats of a named signal: signals with the same name and key count ' +
        'once. Not needed with step_key, because a step is completed only once',
    }),
  ),
  step_key: Type.Optional(Type.String({ minLength: 1, maxLength: 512 })),
  result: Type.Optional(JsonObject),
})
/** Checks that a signal has either a name or the key of a step, with the matching content. */
export const checkSignal = ({ name, payload, step_key, result }: Static<typeof Signal>) => [
  ...((name === undefined) === (step_key === undefined)
    ? [{ field: 'name', message: 'give exactly one of name and step_key' }]
    : []),
  ...(name !== undefined && result !== undefined
    ? [{ field: 'result', message: 'is allowed only with step_key; a signal has a payload' }]
    : []),
  ...(step_key !== undefined && payload !== undefined
    ? [{ field: 'payload', message: 'is allowed only with name; a step has a result' }]
    : []),
]
/** Checks that a run has one source, and the spec if this is the source. */
export const checkStart = (body: Static<typeof StartRun>) =>
  (body.definition_id === undefined) === (body.spec === undefined)
    ? [{ field: 'definition_id', message: 'give exactly one of definition_id and spec' }]
    : body.spec
      ? checkSpec(body.spec, 'spec')
      : []
