/** The actions of environments in the catalog. */
import t from 'tap'
import type { World } from '../../../gateway/ports.ts'
import { entriesOf, findEntry } from '../../../gateway/queries/action-catalog.ts'
import type { CatalogEntry } from '../../../protocol/actions/rows.ts'
import { isRefusal } from '../../../protocol/errors.ts'
import { reservedActionName } from '../../../protocol/naming.ts'
import { fakeWorld } from '../../support/fake-world.ts'

/** Creates an installation that has these environment providers, and defines no actions. */
const worldWith = (...providers: string[]): World =>
  fakeWorld({
    organization: () => 'org_1',
    settings: {
      brand: 'Service',
      ...(providers.length > 0 && {
        environments: { default_provider: 'local', providers, aliases: {} },
      }),
    },
    view: async (_: string, question: string) =>
      question === 'callable' ? { actions: [], workflows: [] } : { items: [] },
  })
async function environmentEntries(world: World): Promise<readonly CatalogEntry[]> {
  const entries = await entriesOf(world, 'prj_1')
  if (isRefusal(entries)) throw new Error(entries.refused)
  return entries.filter(({ name }) => name.startsWith('environment.'))
}

t.test('the catalog has the published actions of environments', async (t) => {
  const entries = await environmentEntries(worldWith('local'))
  t.strictSame(
    entries.map(({ name, risk }) => [name.slice('environment.'.length), risk]),
    [
      ['artifact.download', 'low'],
      ['artifact.publish', 'medium'],
      ['bash', 'high'],
      ['files.delete', 'medium'],
      ['files.list', 'low'],
      ['files.read', 'low'],
      ['files.write', 'medium'],
      ['git.clone', 'medium'],
      ['git.diff', 'low'],
      ['git.fetch', 'low'],
      ['git.status', 'low'],
      ['logs.tail', 'low'],
    ],
  )
  for (const entry of entries)
    t.match(entry, {
      readiness: 'ready',
      source: 'platform',
      definition_scope: 'platform',
      endpoint_kind: 'worker',
      input_schema: { type: 'object', additionalProperties: false },
      execution: { supported_locations: ['environment'], default_location: 'environment' },
    })
})

t.test('without a provider, the actions of environments are not ready', async (t) => {
  for (const entry of await environmentEntries(worldWith()))
    t.match(entry, { readiness: 'needs_setup', readiness_reason: 'not_configured' })
  t.match(await findEntry(worldWith(), 'prj_1', 'environment.bash'), { readiness: 'needs_setup' })
})

t.test('only reading actions may be repeated', async (t) => {
  const repeated = (await environmentEntries(worldWith('local')))
    .filter(({ annotations }) => annotations.read_only)
    .map(({ name }) => name.slice('environment.'.length))
  t.strictSame(repeated, ['files.list', 'files.read', 'git.diff', 'git.status', 'logs.tail'])
})

t.test('the names of the actions of environments are reserved', async (t) => {
  for (const { name } of await environmentEntries(worldWith('local')))
    t.equal(reservedActionName(name, 'Service').length, 1, name)
  t.equal(reservedActionName('environments.bash', 'Service').length, 0)
})
