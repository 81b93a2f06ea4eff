/** How an inline config's references by name are resolved if several records have the same name. */
import t from 'tap'
import { byName, type CapabilityReader } from '../../../gateway/queries/agent-capabilities.ts'
import { isRefusal } from '../../../protocol/errors.ts'
import { fake } from '../../support/fake-world.ts'

t.test(
  'skills of the project come before those of the organization, older ones first',
  async (t) => {
    const skill = (id: string, source: string) => ({ id, name: 'triage', source })
    // Lists are newest first.
    const lists: Record<string, unknown[]> = {
      'skill.list': [skill('skill_new', 'project'), skill('skill_old', 'project')],
      'skill.list_organization': [skill('skill_shared', 'organization')],
      'toolkit.list': [],
    }
    const reader = fake<CapabilityReader>('reader', {
      world: {
        settings: { brand: 'Service' },
        organization: () => 'org_1',
        view: async (_project: string, name: string) => ({ items: lists[name] ?? [] }),
      },
      directory: {
        project: () => ({ actions: {} }),
        organization: () => ({ actions: {}, projects: {} }),
      },
    })
    const named = await byName(reader, 'prj_1')
    t.strictSame(isRefusal(named) ? named : named.skills.map(({ id }) => id), [
      'skill_old',
      'skill_new',
      'skill_shared',
    ])
  },
)
