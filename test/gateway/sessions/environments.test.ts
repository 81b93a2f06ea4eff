/** The environment in the definition of a turn, and in the record of a session. */
import t from 'tap'
import type { Call, Edge } from '../../../gateway/call.ts'
import { type DefinitionRequest, defineTurn } from '../../../gateway/sessions/definition.ts'
import { readSession } from '../../../gateway/sessions/list.ts'
import type { Agent } from '../../../protocol/agents/schema.ts'
import { boundEnvironment } from '../../../protocol/environments/commands.ts'
import { isRefusal, type Refusal, refuse } from '../../../protocol/errors.ts'
import type { TurnEnvironment } from '../../../protocol/sessions/turns/definition.ts'
import type { Selector } from '../../../protocol/toolkits/schema.ts'
import { fake } from '../../support/fake-world.ts'

const group = (selector: string): Selector => ({ selector_type: 'group', selector })
const agent = {
  id: 'agt_1',
  principal_id: 'agt_1',
  name: 'helper',
  status: 'active',
  model_route: { mode: 'worker', provider: 'local', model: 'm' },
  memory_context: { mode: 'off' },
} as unknown as Agent
const OWN = boundEnvironment('agt_1')

/**
 * Creates a gateway with one agent that has these tools.
 * @param environment the answer to queries about the agent's environment.
 */
function edgeOf(selectors: readonly Selector[], environment: object | Refusal | null = null): Edge {
  const toolkit = { id: 'kit_1', name: 'k', source: 'project', actions: selectors }
  const source = {
    agent,
    toolkits: [{ id: 'kit_1', since: '' }],
    skills: [],
    kept: { toolkits: { kit_1: toolkit }, skills: {} },
  }
  return fake<Edge>('edge', {
    world: {
      settings: {
        brand: 'Service',
        models: { providers: {}, models: [] },
        environments: { default_provider: 'local', providers: ['local'], aliases: {} },
      },
      organization: () => 'org_1',
      now: () => 0,
      ask: async ({ kind }: { kind: string }) => (kind === 'environment' ? environment : source),
      view: async (_: string, question: string) =>
        question === 'callable'
          ? { actions: [], workflows: [] }
          : question === 'session.get'
            ? { id: 'ses_1', agent_id: 'agt_1', compaction: { in_progress: false } }
            : { items: [] },
    },
    directory: {
      project: () => ({ agents: { agt_1: { name: 'helper' } }, principals: {}, roles: {} }),
      organization: () => ({ projects: {}, keys: {} }),
    },
  })
}
async function defined(selectors: readonly Selector[], wanted: DefinitionRequest = {}) {
  const found = await defineTurn(edgeOf(selectors), { project: 'prj_1', agent }, wanted)
  if (isRefusal(found)) throw new Error(JSON.stringify(found))
  return found.definition
}
const read = (edge: Edge, ...include: string[]) =>
  readSession(edge, {
    slots: { session_id: 'ses_1' },
    query: include.length > 0 ? { include } : {},
    project: { id: 'prj_1' },
  } as unknown as Call)

t.test('the tools of an agent work in its own environment', async (t) => {
  const { environment, tools } = await defined([
    group('environment.files'),
    group('service.memory'),
  ])
  t.strictSame(environment, {
    id: OWN,
    use: {
      holder: { kind: 'agent', id: 'agt_1' },
      binding: { mode: 'agent', owner_id: 'agt_1', owned_by: 'agt_1' },
    },
  })
  for (const { name, environment_id } of tools)
    t.equal(environment_id, name.startsWith('environment.') ? OWN : undefined, name)
  t.equal(tools.filter(({ environment_id }) => environment_id === OWN).length, 4)
})
t.test('an agent without such tools has no environment', async (t) => {
  const { environment, tools } = await defined([group('service.memory')])
  t.ok(tools.length > 0)
  t.equal(environment, undefined)
  const step = { disable_tools: true }
  t.equal((await defined([group('environment')], { step })).environment, undefined)
})
t.test('an inline config and each kind of selector grant them', async (t) => {
  const config = { toolkits: [{ name: 'a', actions: ['environment.bash'] }] }
  t.equal((await defined([], { config })).environment?.id, OWN)
  for (const selector of [
    { selector_type: 'exact', selector: 'environment.bash' },
    { selector_type: 'wildcard', selector: '*.bash' },
    { selector_type: 'platform', selector: 'platform.environment.*' },
  ] as const)
    t.equal((await defined([selector])).environment?.id, OWN, selector.selector)
  t.equal(
    (await defined([{ selector_type: 'custom', selector: 'custom.*' }])).environment,
    undefined,
  )
})
t.test('a run decides about the environment of its turns', async (t) => {
  const environment: TurnEnvironment = {
    id: 'env_run',
    use: { holder: { kind: 'run', id: 'run_1' } },
  }
  const found = await defined([group('environment')], { environment })
  t.strictSame(found.environment, environment)
  t.ok(found.tools.every(({ environment_id }) => environment_id === 'env_run'))
  const none = await defined([group('environment.files'), group('service.memory')], {
    environment: null,
  })
  t.equal(none.environment, undefined)
  t.notOk(none.tools.some(({ name }) => name.startsWith('environment.')))
})

t.test('the record of a session has the environment of its agent on request', async (t) => {
  const record = { id: OWN, name: 'n', status: 'ready' }
  const tools = [group('environment')]
  t.match(await read(edgeOf(tools, record), 'environment'), {
    environment: { id: OWN, status: 'ready', name: undefined },
  })
  for (const [edge, include] of [
    [edgeOf(tools, record), []],
    [edgeOf(tools, null), ['environment']],
    [edgeOf([group('service.memory')], record), ['environment']],
  ] as const)
    t.notOk('environment' in (await read(edge, ...include)))
  const silent = edgeOf(tools, refuse('service_unavailable'))
  t.match(await read(silent, 'environment'), { refused: 'service_unavailable' })
  t.match(await read(silent), { id: 'ses_1' }, 'its owner is asked only on request')
})
