/** What a schema cannot say about steps and checks that ask an agent, and which agents a workflow names. Whether these exist is known at the edge only. */
import type { Static } from 'typebox'
import { compactionFaults, routeFaults } from '../../agents/schema.ts'
import type { FieldError } from '../../errors.ts'
import { checkOutput } from '../../sessions/check.ts'
import type { SessionPolicy, Step } from '../../workflows/steps.ts'
import { below } from './path.ts'
import { placesIn } from './places.ts'
import type { Scope } from '../expressions/scope.ts'
import { checkTemplate } from '../expressions/template.ts'

type Policy = Static<typeof SessionPolicy>
type AgentConfig = Extract<Step, { kind: 'agent' }>['config']
type Assertion = Extract<Step, { kind: 'check' }>['config']['checks'][number]

/** Names that the name and the title of a session may read besides those of every expression. */
const SESSION_ROOTS = ['agent', 'loop', 'source', 'step'] as const

/** Faults of a session policy; `scope`: what its templates may read where it stands. */
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

/** Faults of the config of an agent step. */
export const checkAgentConfig = (
  { instructions, output_schema, session, model_route }: AgentConfig,
  path: string,
  scope: Scope,
): FieldError[] => [
  ...(instructions.trim() === ''
    ? [{ field: below(path, 'instructions'), message: 'says nothing' }]
    : []),
  ...checkTemplate(instructions, scope.roots, below(path, 'instructions'), scope.rule),
  ...(output_schema ? checkOutput(output_schema, below(path, 'output_schema')) : []),
  ...(session ? checkSessionPolicy(session, below(path, 'session'), scope) : []),
  ...routeFaults(model_route, undefined, below(path, 'model_route')),
]

/** Faults of an assertion that an agent judges. */
export const checkJudge = (
  { prompt }: Assertion,
  path: string,
  { roots, rule }: Scope,
): FieldError[] =>
  prompt === undefined || prompt.trim() === ''
    ? [{ field: below(path, 'prompt'), message: 'is required for a check by an agent' }]
    : checkTemplate(prompt, roots, below(path, 'prompt'), rule)

/** A place of a workflow that names an agent; without a name, that of the loop is meant. */
interface NamedAgent {
  readonly field: string
  readonly name: string | undefined
}
/** The agents that steps name, with the exact places; the judges of checks only where they are named. @param path of the steps. */
export const agentsNamed = (steps: readonly Step[], path: string): NamedAgent[] =>
  placesIn(steps, path, ({ kind, config }, at): NamedAgent[] => {
    if (kind === 'agent') return [{ field: below(at, 'agent_id'), name: config.agent_id }]
    return kind === 'check'
      ? config.checks.flatMap(({ agent }, i) =>
          agent === undefined
            ? []
            : [{ field: below(below(below(at, 'checks'), i), 'agent'), name: agent }],
        )
      : []
  })
/** Steps that name no agent where nothing else names one. */
export const checkAgentless = (steps: readonly Step[], path: string): FieldError[] =>
  agentsNamed(steps, path)
    .filter(({ name }) => name === undefined)
    .map(({ field }) => ({ field, message: 'is required: nothing else says which agent is asked' }))
