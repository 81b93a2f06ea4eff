/**
 * Schemas of the steps in the authoring form, one for each kind. `rules/workflow-check/kinds.ts`
 * checks the rules that a schema cannot express.
 *
 * The steps inside a step contain no further steps. Deeper nesting requires a separate workflow,
 * which a `loop` step runs.
 */
import { type Static, type TSchema, Type } from 'typebox'
import { Closed, Duration, JsonObject, Timestamp } from '../common.ts'
import { InteractionKind, Policy, Question } from '../interactions/schema.ts'

const StepId = Type.String({
  minLength: 1,
  maxLength: 128,
  pattern: '^[^\\u0000-\\u001f\\u007f-\\u009f]*$',
  description:
    'Id of the step: text without control characters, unique in its list; the index by default',
})
const BranchId = Type.String({ pattern: '^[A-Za-z_][A-Za-z0-9_-]{0,63}$' })
const Expression = Type.String({ maxLength: 4096 })
const Targets = Type.Array(
  Type.String({
    minLength: 1,
    maxLength: 4096,
    description:
      'Id of a principal, role:<name>, or a template; a template that evaluates to a list is ' +
      'replaced by its elements',
  }),
  { minItems: 1, maxItems: 100 },
)
export const StepRetry = Closed({
  max_attempts: Type.Optional(Type.Integer({ minimum: 1, maximum: 10 })),
  delay: Type.Optional(Duration),
})
export const StepTimeout = Closed({
  duration: Type.Optional(Duration),
  on_timeout: Type.Optional(
    Type.Enum(['fail', 'continue'], {
      description: 'continue: the step is completed with {timed_out: true}',
    }),
  ),
})
const step = {
  id: Type.Optional(StepId),
  name: Type.Optional(Type.String({ maxLength: 160 })),
  if: Type.Optional(Expression),
  retry: Type.Optional(StepRetry),
  timeout: Type.Optional(StepTimeout),
}
const kindOf = <K extends string, C extends TSchema>(kind: K, config: C) =>
  Closed({ ...step, kind: Type.Literal(kind), config })

const action = {
  action_name: Type.String({ minLength: 1, maxLength: 128 }),
  execution_location: Type.Optional(
    Type.Enum(['managed', 'worker', 'environment'], {
      description:
        'Where the action is executed. managed: only by the service; worker: only by a worker; ' +
        'environment: only by the worker of the environment of the step, the policy or the run. ' +
        'Actions named environment.* are always executed in an environment. By default, the ' +
        'service executes actions that have an endpoint, and workers execute all others',
    }),
  ),
  environment_id: Type.Optional(Type.String()),
  parameters: Type.Optional(JsonObject),
}
export const ActionStep = kindOf('action', Closed(action))
/** An action of a cleanup. Unknown fields are retained. */
export const CleanupStep = Type.Object(
  {
    ...step,
    kind: Type.Literal('action'),
    config: Type.Object(action, { additionalProperties: true }),
  },
  { additionalProperties: true },
)
export const SleepStep = kindOf(
  'sleep',
  Closed({ duration: Type.Optional(Duration), until: Type.Optional(Timestamp) }),
)
export const WaitStep = kindOf(
  'wait_for_event',
  Closed({
    event_type: Type.String({ minLength: 1, maxLength: 256 }),
    source_id: Type.Optional(Type.String()),
    match: Type.Optional(JsonObject),
    condition: Type.Optional(Expression),
    payload_mapping: Type.Optional(Type.Record(Type.String(), Expression)),
  }),
)
export const InteractionStep = kindOf(
  'interaction',
  Closed({
    protocol: InteractionKind,
    targets: Targets,
    prompt: Type.Optional(Type.String({ maxLength: 16_384 })),
    title: Type.Optional(Type.String({ minLength: 1, maxLength: 512 })),
    description: Type.Optional(Type.String({ maxLength: 16_384 })),
    resolution_policy: Type.Optional(Type.Union([Policy, Type.Enum(['any_of', 'all_of'])])),
    spec: Type.Optional(Question),
    context: Type.Optional(JsonObject),
    expires_in: Type.Optional(Duration),
    expires_at: Type.Optional(Timestamp),
    on_expiry: Type.Optional(Type.Enum(['fail', 'continue'])),
    on_cancel: Type.Optional(Type.Enum(['fail', 'continue'])),
  }),
)
export const Assertion = Closed({
  name: Type.String({ minLength: 1, maxLength: 160 }),
  kind: Type.Enum(['expr', 'agent']),
  expr: Type.Optional(Expression),
  agent: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 128,
      description: 'Id or name of the agent that judges; the built-in reviewer by default',
    }),
  ),
  prompt: Type.Optional(Type.String({ maxLength: 16_384 })),
  evidence: Type.Optional(
    Type.Array(Type.String(), { maxItems: 200, description: 'Ids of earlier steps' }),
  ),
})
export const CheckStep = kindOf(
  'check',
  Closed({
    checks: Type.Array(Assertion, { minItems: 1, maxItems: 100 }),
    on_fail: Type.Optional(Type.Enum(['fail', 'continue', 'gate'])),
    gate: Type.Optional(
      Closed({ targets: Targets, prompt: Type.Optional(Type.String({ maxLength: 16_384 })) }),
    ),
  }),
)
export const LoopStep = kindOf(
  'loop',
  Closed({
    loop_id: Type.Optional(Type.String({ minLength: 1, maxLength: 128 })),
    workflow_id: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 128,
        description:
          'Id or handle of a workflow of the project; its version is fixed when the topmost run ' +
          'starts, and in a loop when the loop is saved',
      }),
    ),
    event: Type.Optional(JsonObject),
    config: Type.Optional(JsonObject),
    wait: Type.Optional(
      Type.Boolean({
        description:
          'true: the step completes when the child run has ended; otherwise it completes when ' +
          'the child run has started',
      }),
    ),
  }),
)

const effort = Type.Enum(['inherit', 'low', 'medium', 'high', 'xhigh', 'max'])
/**
 * The session in which an agent step opens its turns. It is found by `name`, among the sessions of
 * the loop, workflow or inline run (scope `loop` or `auto`) or of the agent (scope `agent`).
 * `thinking_effort` applies to each turn. `title`, `visibility` and `compaction_policy` apply only
 * when a session is created.
 */
export const SessionPolicy = Closed({
  scope: Type.Optional(Type.Enum(['auto', 'loop', 'agent'])),
  name: Type.Optional(Type.String({ maxLength: 4096 })),
  title: Type.Optional(Type.String({ maxLength: 4096 })),
  visibility: Type.Optional(Type.Enum(['project', 'private'])),
  compaction_policy: Type.Optional(
    Closed({
      strategy: Type.Optional(Type.Enum(['auto', 'manual', 'disabled', 'none'])),
      threshold: Type.Optional(Type.Enum(['xs', 'sm', 'md', 'lg', 'xl'])),
      threshold_tokens: Type.Optional(Type.Integer({ minimum: 1, maximum: 10_000_000 })),
      summary_model: Type.Optional(Type.String()),
    }),
  ),
  thinking_effort: Type.Optional(effort),
})
export const AgentStep = kindOf(
  'agent',
  Closed({
    instructions: Type.String({
      minLength: 1,
      maxLength: 131_072,
      description: 'Instructions for the agent, as a template',
    }),
    agent_id: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 128,
        description: 'Id or name of an agent of the project; the agent of the loop by default',
      }),
    ),
    tool_names: Type.Optional(
      Type.Array(Type.String(), {
        maxItems: 500,
        description: 'Tools of the agent that it may use in this step; an empty list allows none',
      }),
    ),
    disable_tools: Type.Optional(
      Type.Boolean({
        description:
          'Disables the tools of the agent, including its memory tools; built-in tools, such as ' +
          'asking a person, stay enabled',
      }),
    ),
    output_schema: Type.Optional(JsonObject),
    max_turns: Type.Optional(
      Type.Integer({ minimum: 1, description: 'Maximum number of requests to the model' }),
    ),
    session: Type.Optional(SessionPolicy),
    model_route: Type.Optional(
      Closed({
        mode: Type.Enum(['managed', 'worker']),
        environment_id: Type.Optional(Type.String()),
        provider: Type.Optional(Type.String()),
        model: Type.Optional(Type.String()),
      }),
    ),
  }),
)

const plainSteps = [
  ActionStep,
  SleepStep,
  WaitStep,
  InteractionStep,
  CheckStep,
  LoopStep,
  AgentStep,
] as const
/** A step that contains no other steps. */
export const PlainStep = Type.Union([...plainSteps])
const joining = {
  join: Type.Optional(
    Type.Enum(['all', 'any', 'first_failure'], {
      description:
        'When the step ends. all (the default): when every branch has ended; any: the first ' +
        'branch that completes ends the others; first_failure: the first branch that fails ends ' +
        'the others',
    }),
  ),
  on_failure: Type.Optional(
    Type.Enum(['fail', 'continue'], {
      description:
        'continue: the step completes although branches failed, and its output names the failed ' +
        'branches',
    }),
  ),
}
const nested = {
  steps: Type.Array(PlainStep, { minItems: 1, maxItems: 50 }),
  output: Type.Optional(JsonObject),
}
export const ParallelStep = kindOf(
  'parallel',
  Closed({
    branches: Type.Array(Closed({ id: BranchId, ...nested }), { minItems: 1, maxItems: 20 }),
    ...joining,
  }),
)
export const ForEachStep = kindOf(
  'for_each',
  Closed({
    items: Type.Union([Expression, Type.Array(Type.Unknown(), { maxItems: 10_000 })], {
      description: 'List, or an expression that evaluates to a list',
    }),
    max_concurrency: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 100,
        description: 'Maximum number of items that are executed at once; 10 by default',
      }),
    ),
    ...nested,
    ...joining,
  }),
)

/** One step: `{id?, name?, kind, config, if?, retry?, timeout?}`. */
export const Step = Type.Union([...plainSteps, ParallelStep, ForEachStep])
export type Step = Static<typeof Step>
