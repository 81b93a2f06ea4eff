/**
 * Random commands by random principals, compared with a model of sets and lists, and with a view of
 * the resulting journal. Invariant: after every history, actor, model and view agree on members,
 * threads, pins, read markers and message numbers. Message numbers have no gaps.
 */
import * as fc from 'fast-check'
import t from 'tap'
import { fold } from '../../../actors/actor.ts'
import type { ChannelState } from '../../../actors/channels/state.ts'
import type {
  ChannelEvent,
  ChannelMember,
  ChannelMessage,
  MessageFacts,
} from '../../../protocol/channels/schema.ts'
import { View } from '../../../views/view.ts'
import { given } from '../../support/given.ts'
import { Journal, T0 } from '../../views/support/journal.ts'
import { actor, by, CHANNEL, member, opened, settings } from './story.ts'

const people = ['ann', 'bob', 'cyd', 'dan'] as const
const who = fc.constantFrom(...people)
interface Step {
  readonly who: string
  readonly name: string
  readonly input: Record<string, unknown>
  readonly nth?: number
}
/** Random steps. `nth` is the index of the message that the command refers to. */
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      who,
      name: fc.constant('channel.send'),
      input: fc.record({ content: fc.constantFrom('a', 'b') }),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      who,
      name: fc.constant('channel.send'),
      input: fc.constant({ content: 'r', reply_to: 'x' }),
      nth: fc.nat(30),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      who,
      name: fc.constant('channel.edit'),
      input: fc.constantFrom(
        { pinned: true },
        { pinned: false },
        { content: 'edited' },
        { metadata: { n: 1 } },
        { metadata: null },
      ),
      nth: fc.nat(30),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.tuple(who, who, fc.constantFrom('admin', 'member')).map(([me, id, role]) => ({
      who: me,
      name: 'channel.add_member',
      input: { user_id: id, role, person: { id, kind: 'user' } },
    })),
  },
  {
    weight: 3,
    arbitrary: fc
      .tuple(who, who)
      .map(([me, user_id]) => ({ who: me, name: 'channel.remove_member', input: { user_id } })),
  },
  {
    weight: 2,
    arbitrary: fc
      .tuple(who, fc.nat(12))
      .map(([me, seq]) => ({ who: me, name: 'channel.mark_read', input: { user_id: me, seq } })),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      who,
      name: fc.constant('channel.update'),
      input: fc
        .constantFrom(
          { private: true },
          { private: false },
          { topic: 'T' },
          { archived_at: '2026-01-01T00:00:00Z' },
          { archived_at: null },
          { archived_at: null },
        )
        .map((input) => ({ ...input, project_admin: false })),
    }),
  },
)

interface Model {
  members: Map<string, { role: string; read: number }>
  messages: {
    id: string
    sender: string
    root?: string
    content: string
    pinned: boolean
    metadata?: unknown
  }[]
  private: boolean
  archived: boolean
}
/** Applies a step to the model. Returns whether the model accepts it. */
function play(model: Model, { who: me, name, input }: Step, nth: number | undefined): boolean {
  const mine = model.members.get(me)
  if (model.private && !mine) return false
  const target = nth === undefined ? undefined : model.messages[nth]
  switch (name) {
    case 'channel.send': {
      if (!mine || model.archived || (nth !== undefined && !target)) return false
      model.messages.push({
        id: `cmsg_${model.messages.length + 1}`,
        sender: me,
        content: String(input['content']),
        pinned: false,
        ...(target && { root: target.root ?? target.id }),
      })
      mine.read = model.messages.length
      return true
    }
    case 'channel.edit': {
      if (!mine || model.archived || !target || (!('pinned' in input) && target.sender !== me))
        return false
      Object.assign(target, input)
      if (input['metadata'] === null) delete target.metadata
      return true
    }
    case 'channel.add_member': {
      const id = String(input['user_id'])
      if (
        model.archived ||
        model.members.has(id) ||
        (mine?.role !== 'admin' && (id !== me || input['role'] === 'admin'))
      )
        return false
      model.members.set(id, { role: String(input['role']), read: 0 })
      return true
    }
    case 'channel.remove_member': {
      const it = model.members.get(String(input['user_id']))
      if (!it || model.archived || (input['user_id'] !== me && mine?.role !== 'admin')) return false
      if (
        it.role === 'admin' &&
        model.members.size > 1 &&
        [...model.members.values()].filter(({ role }) => role === 'admin').length === 1
      )
        return false
      return model.members.delete(String(input['user_id']))
    }
    case 'channel.mark_read': {
      const seq = Number(input['seq'])
      if (!mine || seq > model.messages.length) return false
      mine.read = Math.max(mine.read, seq)
      return true
    }
    default:
      if (mine?.role !== 'admin') return false
      if ('private' in input) model.private = Boolean(input['private'])
      if ('archived_at' in input) model.archived = input['archived_at'] !== null
      return true
  }
}

const same = (found: unknown, wanted: unknown, what: string) => {
  if (JSON.stringify(found) !== JSON.stringify(wanted))
    throw new Error(`${what}: ${JSON.stringify(found)} is not ${JSON.stringify(wanted)}`)
}
const sorted = (lines: readonly string[]): string[] => [...lines].sort()

t.test('the actor, the model and the view agree', (t) => {
  void fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const model: Model = {
        members: new Map([
          ['ann', { role: 'admin', read: 0 }],
          ['bob', { role: 'member', read: 0 }],
        ]),
        messages: [],
        private: false,
        archived: false,
      }
      const facts: MessageFacts[] = []
      const journal = new Journal()
      let scene = opened()
      const write = (events: readonly unknown[]) => {
        if (events.length > 0)
          journal.commit(0, {
            kind: 'channel',
            project: 'prj_a',
            id: CHANNEL,
            events: events as ChannelEvent[],
          })
      }
      write(scene.events)
      for (const one of steps) {
        const target = one.nth === undefined ? undefined : facts[one.nth]
        const after = scene.when(
          one.name,
          {
            ...one.input,
            ...(one.input['reply_to'] !== undefined && target && { reply_to: target.id }),
            ...(target && { target }),
            may_invoke: false,
          },
          by(one.who),
        )
        same(
          after.refused === undefined,
          play(model, one, one.nth),
          `${one.who} ${one.name} ${JSON.stringify(one.input)}`,
        )
        if (after.refused) continue
        scene = after
        for (const event of after.events as unknown as ChannelEvent[]) {
          if (event.type !== 'message.created') continue
          const { id, seq, sender_id, reply_to } = event.message
          facts.push({ id, seq, sender_id, ...(reply_to !== undefined && { reply_to }) })
        }
        write(after.events)
      }
      const { state } = scene
      same(
        facts.map(({ seq }) => seq),
        facts.map((_, n) => n + 1),
        'numbers',
      )
      same(state.message_seq, model.messages.length, 'newest')
      same(
        sorted(Object.keys(state.pinned)),
        sorted(model.messages.filter(({ pinned }) => pinned).map(({ id }) => id)),
        'pins',
      )
      same(
        sorted(
          Object.values(state.members).map(
            ({ member_id, role, last_read_seq }) => `${member_id} ${role} ${last_read_seq}`,
          ),
        ),
        sorted([...model.members].map(([id, { role, read }]) => `${id} ${role} ${read}`)),
        'members',
      )
      const folded = JSON.parse(
        JSON.stringify(fold(actor, JSON.parse(JSON.stringify(scene.history)))),
      ) as ChannelState
      same(folded, JSON.parse(JSON.stringify(state)), 'the history gives the state')

      const view = View.open(':memory:', { now: () => T0 })
      view.apply(journal.messages)
      const viewer = { id: [...model.members.keys()][0] ?? 'nobody', admin: false }
      const ask = <T>(name: string, input: object = {}) =>
        (view.ask(name, 'prj_a', { id: CHANNEL, viewer, limit: 200, ...input }) as { items?: T[] })
          .items ?? []
      const seen = !model.private || model.members.has(viewer.id)
      const messages = seen ? model.messages : []
      const replies = (id: string) => model.messages.filter(({ root }) => root === id).length
      same(
        ask<ChannelMessage>('channel.messages').map(
          ({ id, seq, content, pinned, reply_to, reply_count }) => [
            id,
            seq,
            content,
            pinned,
            reply_to,
            reply_count,
          ],
        ),
        messages
          .map(({ id, content, pinned, root }, n) => [
            id,
            n + 1,
            content,
            pinned,
            root,
            replies(id) || undefined,
          ])
          .reverse(),
        'listed messages',
      )
      for (const id of people)
        same(
          ask<ChannelMessage>('channel.messages', { sender_id: id }).length,
          messages.filter(({ sender }) => sender === id).length,
          'by sender',
        )
      same(
        ask<ChannelMessage>('channel.messages', { pinned: true }).length,
        messages.filter(({ pinned }) => pinned).length,
        'pinned',
      )
      if (messages[0])
        same(
          ask<ChannelMessage>('channel.messages', { reply_to: messages[0].id }).length,
          replies(messages[0].id),
          'thread',
        )
      same(
        ask<ChannelMember>('channel.members').map(
          ({ member_id, role, last_read_seq }) => `${member_id} ${role} ${last_read_seq}`,
        ),
        seen
          ? sorted([...model.members].map(([id, { role, read }]) => `${id} ${role} ${read}`))
          : [],
        'listed members',
      )
      same(
        ask<ChannelMessage>('channel.search', { q: 'edited' }).length,
        messages.filter(({ content }) => content === 'edited').length,
        'found',
      )
      const events = ask<{ event_type: string }>('channel.events').length
      same(
        events,
        seen
          ? Math.min(
              200,
              scene.history.filter(
                ({ type }) =>
                  !['channel.created', 'member.read', 'confirmation.begun'].includes(type),
              ).length,
            )
          : 0,
        'events',
      )
      view.close()
    }),
    { numRuns: 200 },
  )
  t.end()
})

t.test(
  'replaying a history, or splitting it, changes no answer; a deleted channel leaves no data',
  (t) => {
    const view = View.open(':memory:', { now: () => T0 })
    const journal = new Journal()
    const commit = (events: readonly unknown[]) =>
      journal.commit(0, {
        kind: 'channel',
        project: 'prj_a',
        id: CHANNEL,
        events: events as ChannelEvent[],
      })
    let scene = given<ChannelState>(actor).when(
      'channel.open',
      { channel: settings(), members: [member('ann', 'admin')], holder: 'chn_1' },
      by('ann'),
    )
    commit(scene.events)
    for (let n = 0; n < 1200; n++) {
      scene = scene.when('channel.send', { content: `word ${n}` })
      commit(scene.events)
    }
    view.apply(journal.messages.slice(0, 700))
    view.apply(journal.messages.slice(300))
    const input = { id: CHANNEL, viewer: { id: 'ann', admin: false }, limit: 200 }
    t.match(view.ask('channel.get', 'prj_a', input), {
      message_seq: 1200,
      member_count: 1,
      unread_count: 0,
    })
    t.equal(
      (view.ask('channel.search', 'prj_a', { ...input, q: 'word' }) as { items: unknown[] }).items
        .length,
      200,
    )
    commit(scene.when('channel.delete', { project_admin: false }).events)
    view.apply(journal.messages)
    for (const name of ['channel.get', 'channel.messages', 'channel.events', 'channel.members'])
      t.match(view.ask(name, 'prj_a', input), { refused: 'not_found' })
    t.same(view.ask('channel.search', 'prj_a', { ...input, q: 'word' }), { items: [] })
    let rounds = 0
    for (; view.untidy(); rounds++) view.tidy()
    t.ok(rounds >= 3, 'a little at a time')
    t.same(view.ask('channel.search', 'prj_a', { ...input, q: 'word' }), { items: [] })
    view.close()
    t.end()
  },
)
