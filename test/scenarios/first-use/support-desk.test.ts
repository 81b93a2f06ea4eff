/**
 * examples/support-desk as its README describes it: the files are applied, and a request becomes a
 * ticket whose reply a person approves. The scripted model generates the answers of both agents.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { service } from '../../support/service.ts'
import { commandRunner } from '../support/command-line.ts'
import { ended, idsOf, listOf, until } from '../support/given.ts'
import { person } from '../support/people.ts'

const home = mkdtempSync(join(tmpdir(), 'baton-desk-'))
const s = await service()
t.teardown(async () => {
  await s.stop()
  rmSync(home, { recursive: true, force: true })
})
const baton = commandRunner(s, home)
const folder = join(import.meta.dirname, '../../../examples/support-desk')

t.test('the example works without a provider of models', async (t) => {
  t.match(await baton(['apply', '-f', folder, '--yes']), { code: 0 })
  const ada = await person(s, 'ada')
  const assigned = ['assignment', 'create', '--principal-id', ada.id, '--role-name', 'Support desk']
  t.match(await baton(assigned), { code: 0 })
  const event = { number: 'T-1', customer: 'C-7', body: 'My invoice is wrong.' }
  const published = ['--event-type', 'desk.ticket.opened', '--event', JSON.stringify(event)]
  t.match(await baton(['event', 'publish', ...published]), { code: 0 })

  const pending = await until(
    async () => [
      ...listOf(await s.ok('interaction.list', { status: 'pending' })),
      ...listOf(await s.ok('run.list', { status: 'failed' })),
    ],
    ({ length }) => length > 0,
    'the question about the reply',
  )
  t.match(pending, [{ title: 'Send this reply to T-1?' }])
  await ada.ok('interaction.respond', { id: pending[0]?.['id'], value: true })
  for (const id of idsOf(await s.ok('run.list')))
    t.match(await ended(s, id), { status: 'completed' })
  const rows = await baton(['row', 'query', 'tickets', '-o', 'json'])
  t.match(JSON.parse(rows.out), {
    items: [{ data: { number: 'T-1', team: 'billing', status: 'answered', reply: /^Thank you/ } }],
  })
})
