/**
 * A principal that is disabled or deleted between the gateway's lookup and the channel's decision
 * does not remain a member.
 */
import t, { type Test } from 'tap'
import type { Command } from '../../../protocol/entry.ts'
import { gateway } from '../support/edge-world.ts'
import { PRJ } from '../support/given.ts'

const CHANNEL = 'chan_01AAAAAAAAAAAAAAAAAAAAAA0C'
const path = '/v1/projects/default/channels'

/** Starts a gateway, and applies `change` to a principal while it is added to a channel. */
async function racing(t: Test, change: 'disable' | 'delete' | 'nothing') {
  const at = await gateway()
  t.teardown(() => at.server.stop())
  const bot = at.change(PRJ, 'principal.create', { name: 'bot' })
  const expelled: unknown[] = []
  const lose = (reply: object) => () => {
    if (change === 'disable') at.change(PRJ, 'principal.update', { id: bot.id, state: 'disabled' })
    if (change === 'delete') at.change(PRJ, 'principal.delete', { id: bot.id })
    at.edge.directory.forget(PRJ)
    return { reply }
  }
  at.on['channel.add_member'] = lose({ member_id: bot.id })
  at.on['channel.create'] = lose({ id: CHANNEL })
  at.on['channel.expel'] = ({ id, input }: Command) => {
    expelled.push([id, input])
    return { reply: undefined }
  }
  at.views['channel.get'] = () => ({ id: CHANNEL, member_count: 1 })
  return { at, bot: bot.id, expelled }
}

t.test('a principal disabled while it is added is expelled and refused', async (t) => {
  for (const change of ['disable', 'delete', 'nothing'] as const) {
    const { at, bot, expelled } = await racing(t, change)
    const { status, body } = await at.call('POST', `${path}/${CHANNEL}/members`, { user_id: bot })
    if (change === 'nothing') {
      t.equal(status, 201)
      t.same(expelled, [])
      continue
    }
    t.equal(status, 400, change)
    t.match(body.error.details, { fields: [{ field: 'user_id', actual: bot }] })
    t.same(expelled, [[CHANNEL, { member_id: bot, disabled: change === 'disable' }]])
  }
})

t.test('a principal that is disabled while a channel is created with it is expelled', async (t) => {
  for (const change of ['disable', 'nothing'] as const) {
    const { at, bot, expelled } = await racing(t, change)
    const { status, body } = await at.call('POST', path, { name: 'ops', member_ids: [bot] })
    t.equal(status, 201)
    t.match(body, { id: CHANNEL })
    t.same(expelled, change === 'nothing' ? [] : [[CHANNEL, { member_id: bot, disabled: true }]])
  }
})
