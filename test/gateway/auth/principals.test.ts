/** The principals to which a request may refer. */
import t from 'tap'
import { principalsNamed } from '../../../gateway/auth/principals.ts'
import { isRefusal } from '../../../protocol/errors.ts'
import { edge, ORG, PRJ } from '../support/given.ts'

t.test(
  'a request may refer to active principals of the project and to those of organization keys',
  async (t) => {
    const it = edge()
    const bot = it.change(PRJ, 'principal.create', { name: 'bot' })
    const far = it.change(
      it.change(ORG, 'project.create', { name: 'Far' }).id,
      'principal.create',
      { name: 'far' },
    )
    const known = await it.directory.organization()
    const root = isRefusal(known) ? '' : String(Object.values(known.keys)[0]?.principal_id)
    t.same(await principalsNamed(it.directory, PRJ, [bot.id, root], 'member_ids'), [
      { id: bot.id, kind: 'service', name: 'bot' },
      { id: root, kind: 'service', name: 'root' },
    ])
    t.same(await principalsNamed(it.directory, PRJ, bot.id, 'owner_id'), [
      { id: bot.id, kind: 'service', name: 'bot' },
    ])
    t.match(
      await principalsNamed(it.directory, PRJ, [bot.id, far.id, 'constructor'], 'member_ids'),
      {
        refused: 'bad_request',
        details: {
          fields: [{ field: 'member_ids[1]', actual: far.id }, { field: 'member_ids[2]' }],
        },
      },
    )
    t.match(await principalsNamed(it.directory, PRJ, bot.id, 'owner_id', ['user']), {
      refused: 'bad_request',
      details: { fields: [{ field: 'owner_id' }] },
    })
    it.change(PRJ, 'principal.update', { id: bot.id, state: 'disabled' })
    t.match(await principalsNamed(it.directory, PRJ, [bot.id], 'member_ids'), {
      refused: 'bad_request',
    })
    it.fresh = false
    const named = principalsNamed(it.directory, PRJ, [bot.id], 'member_ids')
    it.advance(3000)
    t.match(await named, { refused: 'service_unavailable' })
  },
)
