/** The follower of a session: rows, deltas and turns in both formats of the stream, v1 and v2. */
import t from 'tap'
import type { Dialect } from '../../../gateway/sessions/transcript/change.ts'
import { SessionFollower } from '../../../gateway/sessions/transcript/follower.ts'
import { LiveRows } from '../../../gateway/sessions/transcript/live.ts'
import { openPreviews } from '../../../gateway/sessions/transcript/previews.ts'
import { numberedDialect } from '../../../gateway/sessions/transcript/v1.ts'
import { transcriptDialect } from '../../../gateway/sessions/transcript/v2.ts'
import type { SessionEvent } from '../../../protocol/sessions/events.ts'
import type { TranscriptMessage, TurnUpsert } from '../../../protocol/sessions/schema.ts'
import type { TranscriptPage } from '../../../protocol/sessions/transcript/pages.ts'

const row = (id: string, sequence: number | null): TranscriptMessage => ({
  id,
  session_id: 'ses_1',
  agent_id: 'agt_1',
  turn_id: 'turn_1',
  role: 'assistant',
  content: [],
  entry_type: 'message',
  status: sequence === null ? 'streaming' : 'final',
  turn_index: 0,
  sequence,
  created_at: '2026-01-01T00:00:00.000Z',
})
const IDLE_MS = 77
const turn = () => new Promise<void>((resolve) => setImmediate(resolve))

t.test(
  'a client that waits for the text of a row does not join while the head is between two pages',
  async (t) => {
    // Revision 1 is a streaming row. The rows of revisions 2 and 3 follow in one entry. A page
    // contains one row.
    const page = (revision: number, after: number): TranscriptPage => {
      const beyond = [2, 3].filter((of) => of > after && of <= revision)
      const more = beyond.length > 1
      const messages = beyond
        .slice(0, 1)
        .map((of) => ({ revision: of, record: row(`m${of}`, of - 1) }))
      return {
        after,
        through: more ? after + 1 : revision,
        cut: revision,
        more,
        revision,
        last: revision * 10,
        messages,
        turns: [],
        interactions: [],
        active: [],
        live: more ? [] : [{ revision: 1, record: row('m1', null) }],
        pending: [],
      }
    }
    const waiting: (() => void)[] = []
    const next = async (): Promise<void> => {
      waiting.shift()?.()
      await turn()
    }
    let answerShown = () => {}
    const follower = new SessionFollower({
      ask: ({ after = 0 }) => new Promise((resolve) => waiting.push(() => resolve(page(3, after)))),
      shown: () =>
        new Promise((resolve) => {
          answerShown = () => resolve(undefined)
        }),
      now: () => 0,
      later: () => () => {},
      age: 1,
      countFallback() {},
      countSent() {},
    })
    const dialect: Dialect = {
      name: 'v2',
      caught: (caught) => caught.page.messages.map(({ record }) => `${record.id} `).join(''),
      ready: (revision) => `ready at ${revision} `,
      change: () => '',
      end: () => 'end',
      patience: () => 1,
    }
    let given = ''
    void follower.join(
      {
        write: (piece) => {
          given += Buffer.from(piece).toString()
        },
        full: false,
        closed: false,
        onDrain() {},
        onClose() {},
        end() {},
      },
      dialect,
      page(1, 1),
    )
    await turn()
    void follower.notice(30)
    await next()
    answerShown()
    await turn()
    while (waiting.length > 0) await next()
    t.match(given, /^m2 (ready at 2 )?m3 (ready at 3 )?$/)
    t.equal(follower.clients, 1)
  },
)

t.test(
  'the shown text of a row is discarded if a page reports that the row started again',
  async (t) => {
    const live = new LiveRows()
    const shows = () => live.rows().map(({ content }) => content)
    const at = (revision: number) => live.set([{ revision, record: row('m1', null) }])
    at(1)
    live.hear({
      session_id: 'ses_1',
      turn_id: 'turn_1',
      message_id: 'm1',
      base: 1,
      born: 1,
      n: 1,
      delta: { text: 'hello' },
      job_id: 'job_1',
      at: 1,
    })
    at(1)
    t.same(shows(), [[{ type: 'text', text: 'hello' }]])
    at(2)
    t.same(shows(), [[]])
    t.same(live.unsought(), ['m1'])
  },
)

t.test(
  'the first delta of a generation is sent at once, later simultaneous ones in one message',
  async (t) => {
    const sent: string[] = []
    const timers: (() => void)[] = []
    const previews = openPreviews({
      ask: async () => ({ turn_id: 'turn_1', message_id: 'm1', revision: 1 }) as never,
      now: () => 0,
      monotonic: () => 0,
      onPreviewed: () => () => {},
      later: (ms, run) => {
        if (ms === 20) timers.push(run)
        return () => {}
      },
      preview: (_, session, pieces) =>
        void sent.push(
          `${session}: ${pieces.map(({ n, delta }) => `${n} ${String(delta['text'])}`).join(', ')}`,
        ),
    })
    const say = (session_id: string, text: string) =>
      previews.publish(
        { project: 'prj_1', session_id, job_id: `job of ${session_id}`, attempt: '1' },
        { text },
      )
    say('a', 'one')
    await turn()
    t.strictSame(sent, ['a: 1 one'])
    for (const text of ['two', 'three']) say('a', text)
    say('b', 'one')
    await turn()
    say('a', 'four')
    t.strictSame(sent, ['a: 1 one', 'b: 1 one'])
    t.equal(timers.length, 1)
    timers[0]?.()
    t.strictSame(sent.slice(2), ['a: 2 two, 3 three, 4 four'])
  },
)

t.test('deltas of a generation for a run are also sent to the followers of the run', async (t) => {
  const sent: string[] = []
  const timers: (() => void)[] = []
  const previews = openPreviews({
    ask: async () =>
      ({ turn_id: 'turn_1', message_id: 'm1', run_id: 'run_1', revision: 1 }) as never,
    now: () => 0,
    monotonic: () => 0,
    onPreviewed: () => () => {},
    later: (ms, run) => {
      if (ms === 20) timers.push(run)
      return () => {}
    },
    preview: (_, followed, pieces) =>
      void sent.push(...pieces.map(({ run_id, n }) => `${followed}: ${run_id} ${n}`)),
  })
  for (let n = 0; n < 2; n++)
    previews.publish(
      { project: 'prj_1', session_id: 'a', job_id: 'job_1', attempt: '1' },
      { text: 'x' },
    )
  await turn()
  timers[0]?.()
  t.strictSame(sent, ['a: run_1 1', 'run_1: run_1 1', 'a: run_1 2', 'run_1: run_1 2'])
})

t.test(
  'in the older stream a turn starts once per connection, even if it resumes several times',
  async (t) => {
    const upsert = (status: string) =>
      ({ id: 'turn_1', session_id: 'ses_1', status }) as unknown as TurnUpsert
    const page = (last: number, active: readonly TurnUpsert[] = []): TranscriptPage => ({
      after: 0,
      through: last / 10,
      cut: last / 10,
      more: false,
      revision: last / 10,
      last,
      messages: [],
      turns: [],
      interactions: [],
      active: active.map((record) => ({ revision: 1, record })),
      live: [],
      pending: [],
    })
    let view = page(0)
    const follower = new SessionFollower({
      ask: () => Promise.resolve(view),
      shown: () => Promise.resolve(undefined),
      now: () => 0,
      later: () => () => {},
      age: 1,
      countFallback() {},
      countSent() {},
    })
    const dialect = numberedDialect('ses_1', 0)
    const connect = async () => {
      const types: string[] = []
      await follower.join(
        {
          write: (piece) =>
            types.push(
              ...[
                ...Buffer.from(piece)
                  .toString()
                  .matchAll(/^event: (.*)$/gm),
              ].map(([, type = '']) => type),
            ),
          full: false,
          closed: false,
          onDrain() {},
          onClose() {},
          end() {},
        },
        dialect,
        view,
      )
      return types
    }
    let cursor = 0
    const happens = (status: string, heard = true) => {
      cursor += 10
      view = page(cursor, status === 'completed' ? [] : [upsert(status)])
      if (!heard) return follower.notice(cursor)
      const events = [{ type: 'turn.upsert', ...upsert(status) }]
      follower.hear({ cursor, entry: { events, prev: cursor - 10, origin: { at: 0 } } } as never)
      return Promise.resolve()
    }
    const first = await connect()
    for (const status of ['queued', 'running', 'running', 'waiting', 'running'])
      await happens(status)
    t.strictSame(first, ['turn.started', 'turn.waiting'])
    const second = await connect()
    t.strictSame(second, ['turn.started'], 'a new connection learns of the active turn')
    await happens('running')
    await happens('running', false)
    t.strictSame(
      [first, second],
      [['turn.started', 'turn.waiting'], ['turn.started']],
      'also if missed entries come from the view',
    )
    await happens('completed')
    t.equal(first.at(-1), 'turn.completed')
  },
)

t.test('a stream without turns stays open during a compaction', async (t) => {
  const timers: (() => void)[] = []
  const page: TranscriptPage = {
    after: 0,
    through: 0,
    cut: 0,
    more: false,
    revision: 0,
    last: 0,
    messages: [],
    turns: [],
    interactions: [],
    active: [],
    live: [],
    pending: [],
  }
  const follower = new SessionFollower({
    ask: async () => page,
    shown: async () => undefined,
    now: () => 0,
    later: (ms, run) => {
      if (ms === IDLE_MS) timers.push(run)
      return () => void timers.splice(timers.indexOf(run) >>> 0, 1)
    },
    age: 1,
    countFallback() {},
    countSent() {},
  })
  let given = ''
  const sink = {
    write: (piece: Uint8Array | string) => void (given += Buffer.from(piece).toString()),
    full: false,
    closed: false,
    onDrain() {},
    onClose() {},
    end() {},
  }
  const dialect = numberedDialect('ses_1', IDLE_MS)
  await follower.join(sink, dialect, page)
  t.equal(timers.length, 1, 'it waits for a turn, not for ever')
  const pass = {
    trigger: 'manual' as const,
    from_sequence: 1,
    through_sequence: 2,
    message_count: 2,
    estimated_tokens: 9,
    summary_model: 'm',
  }
  const hear = (cursor: number, event: SessionEvent) =>
    follower.hear({
      cursor,
      entry: {
        project: 'prj_1',
        kind: 'session',
        id: 'ses_1',
        command: { id: `c${cursor}`, name: 'x' },
        origin: { at: 0, principal: { type: 'user', id: 'user_1' } },
        events: [event],
        prev: cursor - 1,
      },
    })
  const definition = {} as Extract<SessionEvent, { type: 'compaction.started' }>['definition']
  hear(1, { type: 'compaction.started', at: 0, deadline: 1, job_id: 'job_1', pass, definition })
  t.equal(timers.length, 0, 'the pass keeps it open')
  hear(2, { type: 'compaction.failed', error_type: 'timeout', error_message: 'late', pass })
  t.equal(timers.length, 1)
  timers.shift()?.()
  await turn()
  await turn()
  t.match(
    [...given.matchAll(/event: (.*)/g)].map(([, type]) => type),
    ['compaction.started', 'compaction.failed', 'stream.end'],
  )
})

t.test('missed changes are sent in their order to a client that has joined', async (t) => {
  const empty = { after: 0, more: false, messages: [], turns: [], interactions: [], live: [] }
  const at = (revision: number) => ({ through: revision, cut: revision, revision, last: revision })
  const waiting = { revision: 3, record: { id: 'turn_1', status: 'waiting' } as TurnUpsert }
  const question = { revision: 2, record: { id: 'iact_1', status: 'pending' } }
  const page = { ...empty, ...at(0), active: [], pending: [] }
  const missed = {
    ...page,
    ...at(3),
    turns: [waiting],
    active: [waiting],
    interactions: [question],
  }
  const follower = new SessionFollower({
    ask: async () => missed as unknown as TranscriptPage,
    shown: async () => undefined,
    now: () => 0,
    later: () => () => {},
    age: 1,
    countFallback() {},
    countSent() {},
  })
  let given = ''
  const write = (piece: Uint8Array | string) => void (given += Buffer.from(piece).toString())
  const sink = { write, full: false, closed: false, onDrain() {}, onClose() {}, end() {} }
  await follower.join(sink, transcriptDialect('ses_1', String, 0), page)
  await follower.notice(3)
  t.match(
    [...given.matchAll(/event: (.*)/g)].map(([, type]) => type),
    ['stream.ready', 'interaction.upsert', 'turn.upsert'],
  )
})
