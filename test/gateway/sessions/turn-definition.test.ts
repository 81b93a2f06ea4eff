/**
 * The cache of agent sources, from which turn definitions are resolved. An agent is read once, and
 * again after each change to the configuration.
 */
import t from 'tap'
import type { Edge } from '../../../gateway/call.ts'
import { agentOf } from '../../../gateway/sessions/definition.ts'
import { isRefusal } from '../../../protocol/errors.ts'
import { fake } from '../../support/fake-world.ts'

/**
 * Creates a gateway with one project and one agent. `asked` counts the queries to the agent's
 * owner.
 */
function edgeOf() {
  const it = {
    asked: 0,
    status: 'active',
    project: { agents: { agt_1: { name: 'helper' } } } as object,
    organization: { projects: {} } as object,
  }
  const edge = fake<Edge>('edge', {
    world: {
      settings: { brand: 'Service' },
      organization: () => 'org_1',
      ask: async () => {
        it.asked++
        return {
          agent: { id: 'agt_1', name: 'helper', status: it.status },
          toolkits: [],
          skills: [],
          kept: { toolkits: {}, skills: {} },
        }
      },
    },
    directory: { project: () => it.project, organization: () => it.organization },
  })
  const find = async (ref: { readonly id?: string; readonly name?: string }): Promise<string> => {
    const agent = await agentOf(edge, 'prj_1', ref)
    return isRefusal(agent) ? agent.refused : agent.status
  }
  return { it, find }
}

t.test(
  'with a known configuration, a second lookup of an agent does not query its owner',
  async (t) => {
    const { it, find } = edgeOf()
    t.strictSame(
      [await find({ id: 'agt_1' }), await find({ name: 'helper' }), await find({ id: 'agt_2' })],
      ['active', 'active', 'not_found'],
    )
    t.equal(it.asked, 1)
  },
)

t.test('after a change of the project or the organization, an agent is read again', async (t) => {
  const { it, find } = edgeOf()
  await find({ id: 'agt_1' })
  it.status = 'archived'
  it.project = { ...it.project }
  t.equal(await find({ id: 'agt_1' }), 'agent_inactive')
  it.status = 'active'
  it.organization = { ...it.organization }
  t.equal(await find({ id: 'agt_1' }), 'active')
  t.equal(it.asked, 3)
})
