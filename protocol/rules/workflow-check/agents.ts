/**
 * Validation of agent steps and of assertions that agents judge, beyond what the JSON Schema can
 * express. Also collects the agents that a workflow refers to. Only the gateway can check whether
 * they exist.
 */
import type { Static } from 'typebox'
import { compactionFaults, routeFaults } from '../../agents/schema.ts'
import type { FieldError } from '../../errors.ts'
import { checkOutput } from '../../sessions/check.ts'
import type { SessionPolicy, Step } from '../../workflows/steps.ts'
import type { Scope } from '../expressions/scope.ts'
import { checkTemplate } from '../expressions/template.ts'
import { below } from './path.ts'
import { placesIn } from './places.ts'

type Policy = Static<typeof SessionPolicy>
type AgentConfig = Extract<Step, { kind: 'agent' }>['config']
type Assertion = Extract<Step, { kind: 'check' }>['config']['checks'][number]

/** Additional root names available to the templates of a session's name and title. */
const SESSION_ROOTS = ['agent', 'loop', 'source', 'step'] as const

/**
 * Returns the faults of a session policy.
 * @param path path of the policy in the request.
 * @param scope the root names and steps that its templates may read.
 */
export const checkSessionPolicy = (
  { name, title, compaction_policy }: Policy,
  path: string,
  { roots, rule }: Pick<Scope, 'roots' | 'rule'>,
): FieldError[] => [
  ...Object.entries({ name, title }).flatMap(([key, value]) =>
    checkTemplate(value, [...roots, ...SESSION_ROOTS], below(path, key), rule),
  ),
  ...compactionFaults(compaction_policy, below(path, 'compaction_policy')),
]

/** Returns the faults of the config of an agent step. */
export const checkAgentConfig = (
  { instructions, output_schema, session, model_route }: AgentConfig,
  path: string,
  scope: Scope,
): FieldError[] => [
  ...(instructions.trim() === ''
    ? [{ field: below(path, 'instructions'), message: 'must not be blank' }]
    : []),
  ...checkTemplate(instructions, scope.roots, below(path, 'instructions'), scope.rule),
  ...(output_schema ? checkOutput(output_schema, below(path, 'output_schema')) : []),
  ...(session ? checkSessionPolicy(session, below(path, 'session'), scope) : []),
  ...routeFaults(model_route, undefined, below(path, 'model_route')),
]

/** Returns the faults of an assertion that an agent judges. */
export const checkJudge = (
  { prompt }: Assertion,
  path: string,
  { roots, rule }: Scope,
): FieldError[] =>
  prompt === undefined || prompt.trim() === ''
    ? [{ field: below(path, 'prompt'), message: 'is required for a check by an agent' }]
    : checkTemplate(prompt, roots, below(path, 'prompt'), rule)

/**
 * A field of a workflow that refers to an agent. If `name` is undefined, it refers to the agent of
 * the loop.
 */
interface NamedAgent {
  readonly field: string
  readonly name: string | undefined
}
/**
 * Returns the agents that steps refer to, with their exact paths. An agent that judges an assertion
 * is included only if the assertion specifies it.
 * @param path path of the steps.
 */
export const agentsNamed = (steps: readonly Step[], path: string): NamedAgent[] =>
  placesIn(steps, path, ({ kind, config }, at): NamedAgent[] => {
    if (kind === 'agent') return [{ field: below(at(), 'agent_id'), name: config.agent_id }]
    return kind === 'check'
      ? config.checks.flatMap(({ agent }, i) =>
          agent === undefined
            ? []
            : [{ field: below(below(below(at(), 'checks'), i), 'agent'), name: agent }],
        )
      : []
  })
/**
 * Returns a fault for each agent step that specifies no agent, for workflows that have no default
 * agent.
 */
export const checkAgentless = (steps: readonly Step[], path: string): FieldError[] =>
  agentsNamed(steps, path)
    .filter(({ name }) => name === undefined)
    .map(({ field }) => ({ field, message: 'is required, because no default agent is configured' }))
