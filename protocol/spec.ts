/**
 * The authoring form of a workflow: the steps vocabulary. The schema says the shape; `checkSpec` says what a schema
 * cannot (unique ids, compiled expressions, durations), each fault with its exact path.
 */
import { Type, type Static } from 'typebox'
import { Closed, Duration, Open, Timestamp } from './common.ts'
import { InteractionKind, Policy, Question } from './interaction/shapes.ts'

const Declared = Type.Record(Type.String(), Closed({
  type: Type.Optional(Type.String()), description: Type.Optional(Type.String()), required: Type.Optional(Type.Boolean()), default: Type.Optional(Type.Unknown()),
}))
const step = {
  id: Type.Optional(Type.String({ pattern: '^[A-Za-z_][A-Za-z0-9_-]{0,63}$' })),
  name: Type.Optional(Type.String({ maxLength: 160 })),
  if: Type.Optional(Type.String({ maxLength: 4096 })),
  retry: Type.Optional(Closed({ max_attempts: Type.Optional(Type.Integer({ minimum: 1, maximum: 10 })), delay: Type.Optional(Duration) })),
  timeout: Type.Optional(Closed({ duration: Type.Optional(Duration), on_timeout: Type.Optional(Type.Enum(['fail'])) })),
}
const ActionStep = Closed({
  ...step, kind: Type.Literal('action'),
  config: Closed({
    action_name: Type.String({ minLength: 1, maxLength: 128 }),
    execution_location: Type.Optional(Type.Enum(['managed', 'worker', 'environment'])),
    environment_id: Type.Optional(Type.String()),
    parameters: Type.Optional(Open),
  }),
})
const SleepStep = Closed({ ...step, kind: Type.Literal('sleep'), config: Closed({ duration: Type.Optional(Duration), until: Type.Optional(Timestamp) }) })
const WaitStep = Closed({
  ...step, kind: Type.Literal('wait_for_event'),
  config: Closed({
    event_type: Type.String({ minLength: 1, maxLength: 256 }),
    source_id: Type.Optional(Type.String()),
    match: Type.Optional(Open),
    payload_mapping: Type.Optional(Type.Record(Type.String(), Type.String({ maxLength: 4096 }))),
  }),
})
const InteractionStep = Closed({
  ...step, kind: Type.Literal('interaction'),
  config: Closed({
    protocol: InteractionKind,
    targets: Type.Array(Type.String({ minLength: 1, maxLength: 4096, description: 'Ids of principals, role:<name>, or templates; one that gives a list stands for its elements' }), { minItems: 1, maxItems: 100 }),
    prompt: Type.Optional(Type.String({ maxLength: 16_384 })),
    title: Type.Optional(Type.String({ minLength: 1, maxLength: 512 })),
    description: Type.Optional(Type.String({ maxLength: 16_384 })),
    resolution_policy: Type.Optional(Type.Union([Policy, Type.Enum(['any_of', 'all_of'])])),
    spec: Type.Optional(Question),
    context: Type.Optional(Open),
    expires_in: Type.Optional(Duration), expires_at: Type.Optional(Timestamp),
    on_expiry: Type.Optional(Type.Enum(['fail', 'continue'])),
    on_cancel: Type.Optional(Type.Enum(['fail', 'continue'])),
  }),
})
/** One step: `{id?, kind, config, if?, retry?, timeout?}`. */
export const Step = Type.Union([ActionStep, SleepStep, WaitStep, InteractionStep])
export type Step = Static<typeof Step>

export const Spec = Closed({
  steps: Type.Array(Step, { minItems: 1, maxItems: 200 }),
  input: Type.Optional(Declared),
  config: Type.Optional(Declared),
  output: Type.Optional(Open),
  limits: Type.Optional(Closed({ wall_clock_timeout: Type.Optional(Duration) })),
  workflow_type: Type.Optional(Type.String({ minLength: 1, maxLength: 128 })),
  queue: Type.Optional(Type.String({ minLength: 1, maxLength: 128 })),
})
export type Spec = Static<typeof Spec>

export { checkSpec } from './language/check.ts'
