/**
 * When the definition of a turn is requested from the resolver, and how a lookup handles the
 * resolver's responses.
 */
import t from 'tap'
import type { ResolverQuestion } from '../../../gateway/ports.ts'
import type { CapabilityReader } from '../../../gateway/queries/agent-capabilities.ts'
import { type DefinitionRequest, defineTurn } from '../../../gateway/sessions/definition.ts'
import { turnFor } from '../../../gateway/sessions/turn-opening.ts'
import { createOpeningHandler } from '../../../nodes/executor/openings.ts'
import type { Agent } from '../../../protocol/agents/schema.ts'
import { isRefusal, type Refusal, refuse } from '../../../protocol/errors.ts'
import type { KnownDefinition } from '../../../protocol/resolver/callout.ts'
import { resolverDefaults } from '../../../protocol/resolver/schema.ts'
import type { TurnWanted } from '../../../protocol/runs/turns.ts'
import { fake } from '../../support/fake-world.ts'

const agent = {
  id: 'agt_1',
  principal_id: 'agt_1',
  name: 'helper',
  external_ref: 'h-7',
  status: 'active',
  system_prompt: 'Stored.',
  model_route: { mode: 'worker', provider: 'local', model: 'm' },
  memory_context: { mode: 'off' },
} as unknown as Agent
const small = { id: 'small', provider: 'acme', label: 'Small', context_window_tokens: 1000 }
const models = {
  default_model: 'acme/small',
  providers: [{ provider: 'acme', display_name: 'Acme', source: 'byok', models: [small] }],
}
const known = (digest: string): KnownDefinition => ({
  digest,
  definition: { instructions: digest },
  at: 0,
})

/** Creates a gateway or executor with one agent, whose resolver gives this answer. */
function stage({
  source = 'client_resolver',
  answer = known('resolved'),
  calls = true,
  told = { reply: undefined },
}: {
  source?: 'client_resolver' | 'stored'
  answer?: KnownDefinition | Refusal
  /** Whether the node can call a resolver. */
  calls?: boolean
  /** The run's answer to the result of a lookup. */
  told?: object
} = {}) {
  const asked: string[] = []
  const questions: ResolverQuestion[] = []
  const edge = fake<CapabilityReader>('reader', {
    world: {
      node: 'n1',
      settings: { brand: 'Service', models },
      organization: () => 'org_1',
      now: () => 0,
      id: () => 'ses_1',
      hash: (text: string) => text,
      ask: async ({ kind }: { kind: string }) =>
        kind === 'project'
          ? { agent, toolkits: [], skills: [], kept: { toolkits: {}, skills: {} } }
          : { session: null },
      view: async () => ({ items: [] }),
      command: async () => told,
      ...(calls && {
        definitions: {
          resolve: async (question: ResolverQuestion, trigger: string) => {
            asked.push(trigger)
            questions.push(question)
            return answer
          },
          stored: async () => {
            asked.push('stored')
            return undefined
          },
        },
      }),
    },
    directory: {
      project: () => ({ agents: { agt_1: { name: 'helper' } }, principals: {}, roles: {} }),
      organization: () => ({
        projects: { prj_1: { external_ref: 'tenant-9' } },
        keys: {},
        resolver: { settings: { ...resolverDefaults, source }, updated_at: '' },
      }),
    },
  })
  return { edge, asked, questions }
}
const defined = (edge: CapabilityReader, wanted: DefinitionRequest, who: Agent = agent) =>
  defineTurn(edge, { project: 'prj_1', agent: who }, wanted)
const instructionsIn = (found: Awaited<ReturnType<typeof defined>>) =>
  isRefusal(found) ? found.refused : found.definition.instructions

t.test('a turn that starts asks the resolver, by the reference of the agent', async (t) => {
  const { edge, asked, questions } = stage()
  t.equal(instructionsIn(await defined(edge, { trigger: 'invoke' })), 'resolved')
  t.strictSame(asked, ['invoke'])
  t.match(questions[0], {
    project: { id: 'prj_1', external_ref: 'tenant-9' },
    agent_id: 'agt_1',
    selector: 'agent/h-7',
  })
})

t.test('without a start, only the store is read', async (t) => {
  const { edge, asked } = stage()
  t.equal(instructionsIn(await defined(edge, {})), 'Stored.')
  t.strictSame(asked, ['stored'])
})

t.test('nothing is asked where Baton stores the definitions', async (t) => {
  const { edge, asked } = stage({ source: 'stored' })
  t.equal(instructionsIn(await defined(edge, { trigger: 'turn' })), 'Stored.')
  t.strictSame(asked, [])
})

t.test('nothing is asked for a request that is refused anyway', async (t) => {
  const { edge, asked } = stage()
  const inactive = { ...agent, status: 'inactive' } as Agent
  t.equal(instructionsIn(await defined(edge, { trigger: 'turn' }, inactive)), 'agent_inactive')
  const wanted: DefinitionRequest = {
    trigger: 'invoke',
    config: { toolkits: [{ name: 'k', actions: ['crm.find'] }] },
    author: new Set<string>() as never,
  }
  t.equal(instructionsIn(await defined(edge, wanted)), 'permission_denied')
  t.strictSame(asked, [])
})

t.test('a node that cannot call refuses the turn', async (t) => {
  const { edge } = stage({ calls: false })
  t.equal(
    instructionsIn(await defined(edge, { trigger: 'turn' })),
    'definition_resolver_unavailable',
  )
})

const wanted: TurnWanted = {
  turn_id: 'turn_1',
  agent: 'helper',
  session: { scope: 'loop', ref_id: 'run_1', name: 'default' },
  trigger: 'schedule',
  step: {},
}
t.test('a lookup for a run returns what it resolved, unless the run has it', async (t) => {
  const { edge, asked } = stage()
  const first = await turnFor(edge, 'prj_1', wanted)
  const bundle = {
    agent_id: 'agt_1',
    agent_name: 'helper',
    digest: 'resolved',
    definition: { instructions: 'resolved' },
  }
  t.match(first, { definition: { instructions: 'resolved' }, bundle })
  const kept = { ...bundle, digest: 'kept', definition: { instructions: 'kept' } }
  const second = await turnFor(edge, 'prj_1', { ...wanted, bundle: kept })
  t.match(second, { definition: { instructions: 'kept' } })
  t.notOk('bundle' in second)
  const other = await turnFor(edge, 'prj_1', { ...wanted, bundle: { ...kept, agent_id: 'agt_2' } })
  t.match(other, { definition: { instructions: 'resolved' } }, 'the name has another agent now')
  t.strictSame(asked, ['schedule', 'schedule'])
  const { agent: _, ...review } = wanted
  t.match(await turnFor(edge, 'prj_1', review), { definition: { agent_name: 'service-reviewer' } })
  t.equal(asked.length, 2, 'the reviewer belongs to the service')
})

t.test('a failure of the resolver ends the lookup, without a repeat', async (t) => {
  const job = { id: 'job_1', run_id: 'run_1', spec: { ...wanted }, claim_attempt: 1 } as never
  const work = { project: 'prj_1', job, signal: new AbortController().signal }
  for (const code of ['unknown_agent', 'definition_resolver_unavailable'] as const) {
    const { edge } = stage({ answer: refuse(code) })
    t.match(await createOpeningHandler(edge).perform(work), {
      status: 'failed',
      error_type: code,
      final: true,
    })
  }
  const raced = stage({ told: refuse('conflict') })
  const again = await createOpeningHandler(raced.edge).perform(work)
  t.match(again, { status: 'failed', retry_in: 0 })
  t.notOk(typeof again === 'object' && 'final' in again, 'the run keeps another definition')
  t.match(await createOpeningHandler(stage().edge).perform(work), { status: 'completed' })
})
