/**
 * The authoring form of a workflow: the steps and their settings. The schema defines the shape.
 * `checkSpec` checks the rules that a schema cannot express, such as unique ids, valid expressions
 * and durations.
 */
import { type Static, Type } from 'typebox'
import { Closed, Duration, JsonObject, QueueName } from '../common.ts'
import { EnvironmentMode, Provider, RetentionPolicy } from '../environments/schema.ts'
import { publishedHandle } from '../naming.ts'
import { CleanupStep, SessionPolicy, Step } from './steps.ts'

export const DeclaredInput = Closed({
  type: Type.Optional(Type.String()),
  description: Type.Optional(Type.String()),
  required: Type.Optional(Type.Boolean()),
  default: Type.Optional(Type.Unknown()),
})
const Declared = Type.Record(Type.String(), DeclaredInput)
const count = Type.Optional(Type.Integer({ minimum: 0 }))
const money = Type.Optional(Type.Number({ minimum: 0 }))
/**
 * The limits of a run. Absent or 0 means no limit, except that an absent `max_steps` or
 * `max_duplicate_tool_calls` means its default. Expenses count when their usage is recorded. Daily
 * budgets and the limit on consecutive failures apply only to loops.
 */
export const Limits = Closed({
  wall_clock_timeout: Type.Optional(Duration),
  max_steps: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 1_000_000,
      description:
        'Maximum number of step attempts of the run, including attempts in branches and items. ' +
        'Without it, the limit is 1000 and attempts in branches and items are not counted',
    }),
  ),
  budget_usd: money,
  credit_budget: count,
  daily_budget_usd: money,
  daily_credit_budget: count,
  max_agent_turns: count,
  max_duplicate_tool_calls: count,
  pause_after_consecutive_failures: count,
})
/** The environment policy; `environment.ts` describes its effect. */
export const Environment = Closed({
  disabled: Type.Optional(Type.Boolean()),
  mode: Type.Optional(EnvironmentMode),
  environment_id: Type.Optional(Type.String()),
  template_id: Type.Optional(Type.String()),
  provider: Type.Optional(Provider),
  runtime_version: Type.Optional(Type.String()),
  auto_start_worker: Type.Optional(Type.Boolean()),
  retention_policy: Type.Optional(RetentionPolicy),
})

export const Defaults = Closed({
  environment: Type.Optional(Environment),
  agent_session: Type.Optional(SessionPolicy),
})
export const RunName = Closed({
  template: Type.String({ maxLength: 4096 }),
  description_template: Type.Optional(Type.String({ maxLength: 4096 })),
})

export const Spec = Closed({
  steps: Type.Array(Step, { minItems: 1, maxItems: 200 }),
  input: Type.Optional(Declared),
  config: Type.Optional(Declared),
  output: Type.Optional(JsonObject),
  cleanup: Type.Optional(
    Type.Array(CleanupStep, {
      maxItems: 20,
      description: 'Actions that run after the steps, regardless of their outcome',
    }),
  ),
  limits: Type.Optional(Limits),
  defaults: Type.Optional(Defaults),
  run_name: Type.Optional(RunName),
  workflow_type: Type.Optional(Type.String({ minLength: 1, maxLength: 128 })),
  queue: Type.Optional(QueueName),
})
export type Spec = Static<typeof Spec>

/**
 * Returns the distinct references of steps to workflows. Each is an id, a handle or an action name,
 * exactly as in the step.
 */
export const workflowsNamed = ({ steps }: Pick<Spec, 'steps'>): string[] => [
  ...new Set(
    namesIn(steps, ({ kind, config }) =>
      kind === 'loop'
        ? config.workflow_id
        : kind === 'action' && publishedHandle(config.action_name) !== undefined
          ? config.action_name
          : undefined,
    ),
  ),
]
/** Returns the distinct names of the actions to which the steps and the cleanup of a spec refer. */
export const actionsNamed = ({
  steps,
  cleanup = [],
}: Pick<Spec, 'steps' | 'cleanup'>): string[] => [
  ...new Set(
    namesIn([...steps, ...cleanup], ({ kind, config }) =>
      kind === 'action' ? config.action_name : undefined,
    ),
  ),
]
function namesIn(steps: readonly Step[], nameOf: (step: Step) => string | undefined): string[] {
  let names: string[] = []
  for (const step of steps) {
    const { kind, config } = step
    const name = nameOf(step)
    if (name !== undefined) names.push(name)
    else if (kind === 'for_each') names = names.concat(namesIn(config.steps, nameOf))
    else if (kind === 'parallel')
      names = names.concat(config.branches.flatMap((branch) => namesIn(branch.steps, nameOf)))
  }
  return names
}

export { checkSpec } from '../rules/workflow-check/check.ts'
export type { Step } from './steps.ts'
