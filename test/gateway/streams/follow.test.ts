/**
 * A follower of one sequence of events. Invariant: every client receives each event once and in
 * order, under loss, repetition, delay and refusal.
 */
import fc from 'fast-check'
import t from 'tap'
import type { Sink } from '../../../gateway/http/respond.ts'
import { Follower, type Page } from '../../../gateway/streams/follow.ts'
import { type Refusal, refuse } from '../../../protocol/errors.ts'

/** Maximum number of items on a normal page. */
const LIMIT = 3
/** Maximum number of items on a page for a lagging reader. */
const LAGGING_LIMIT = 7
interface Visible {
  readonly cursor: number
  readonly shown: boolean
}
interface Entry {
  readonly prev: number
  readonly last: number
  readonly events: readonly Visible[]
  readonly ends: boolean
}

/**
 * A sequence of entries with a lagging view, live messages that are lost, repeated and reordered,
 * and clients that stop reading.
 */
class Model {
  readonly entries: Entry[] = []
  readonly clients: {
    after: number
    got: number[]
    ended: boolean
    drain: () => void
    resets: number
  }[] = []
  readonly pending: (() => void)[] = []
  applied = 0
  oldest = 0
  questions = 0
  /** Whether some queries without a cursor receive an outdated answer. */
  stale = false
  /** Whether the view answers as soon as it has applied any new entry. */
  eager = false
  readonly #choose: (below: number) => number
  readonly follower: Follower

  constructor(choose: (below: number) => number) {
    this.#choose = choose
    this.follower = new Follower(
      (after, fresh, behind) => this.#ask(after, fresh, behind ? LAGGING_LIMIT : LIMIT),
      (_, run) => {
        this.pending.push(run)
        return () => {}
      },
    )
  }

  get last(): number {
    return this.entries.at(-1)?.last ?? 0
  }

  /**
   * Commits an entry of one to three events. Its live message arrives `copies` times, by default
   * zero to two.
   */
  commit(ends = false, copies = this.#choose(4) % 3): void {
    const first = this.last + 1 + this.#choose(5)
    const events = Array.from({ length: 1 + this.#choose(3) }, (_, index) => ({
      cursor: first + index,
      shown: ends || this.#choose(3) < 2,
    }))
    const entry = { prev: this.last, last: events.at(-1)?.cursor ?? 0, events, ends }
    this.entries.push(entry)
    const items = () =>
      events.filter(({ shown }) => shown).map(({ cursor }) => ({ cursor, frame: `${cursor}\n` }))
    for (let i = 0; i < copies; i++)
      this.pending.push(() => this.follower.hear(entry.prev, entry.last, items, ends))
  }

  #ask(after: number, fresh: number | undefined, limit: number): Promise<Page | Refusal> {
    this.questions++
    // If `eager`, the view waits only for the next entry. If `stale`, an answer may lack committed
    // entries, as when a former leader reports an earlier end of the journal.
    const partial = this.eager && fresh !== undefined
    const wanted = partial ? Math.min(fresh, after + 1) : fresh
    const needed =
      wanted !== undefined
        ? (this.entries.find(({ last }) => last >= wanted)?.last ?? wanted)
        : this.stale && this.#choose(3) === 0
          ? this.#choose(this.last + 1)
          : this.last
    const failure = this.#choose(10)
    return new Promise((resolve, reject) =>
      this.pending.push(() => {
        if (failure === 8) return resolve(refuse('service_unavailable'))
        if (failure === 9) return reject(new Error('nobody answers'))
        const late = failure === 7 && this.applied < needed
        const reachable = this.entries.filter(({ last }) => last > this.applied)
        if (!late)
          this.applied = Math.max(
            this.applied,
            needed,
            reachable[this.#choose(reachable.length + 1)]?.last ?? 0,
          )
        const known = this.entries.filter(({ last }) => last <= this.applied)
        const shown = known
          .flatMap(({ events }) => events)
          .filter((event) => event.shown && event.cursor > after && event.cursor >= this.oldest)
        const items = shown.slice(0, limit).map(({ cursor }) => ({ cursor, frame: `${cursor}\n` }))
        const more = items.length === limit
        const answer = {
          items,
          more,
          last: known.at(-1)?.last ?? 0,
          ended: !more && (known.at(-1)?.ends ?? false),
          oldest: this.oldest,
          partial,
          late,
        }
        this.pending.push(() => resolve(answer))
      }),
    )
  }

  async join(after: number): Promise<void> {
    const opening = await this.follower.open(after).catch(() => refuse('service_unavailable'))
    if ('refused' in opening) return
    const client = { after, got: [] as number[], ended: false, drain: () => {}, resets: 0 }
    this.clients.push(client)
    let unread = 0
    let onDrain = () => {}
    let onClose = () => {}
    client.drain = () => {
      unread = 0
      onDrain()
    }
    const sink: Sink = {
      write: (piece) => {
        unread++
        const text = Buffer.from(piece).toString()
        if (/^\d/.test(text)) client.got.push(...text.trim().split('\n').map(Number))
        else client.resets++
      },
      get full() {
        return unread > 4
      },
      get closed() {
        return client.ended
      },
      onDrain: (run) => {
        onDrain = run
      },
      onClose: (run) => {
        onClose = run
      },
      end: () => {
        if (client.ended) return
        client.ended = true
        onClose()
      },
    }
    this.follower.join(sink, after, opening)
  }

  /** Returns the cursors of the events that a client must receive. */
  expected(after: number): number[] {
    return this.entries
      .flatMap(({ events }) => events)
      .filter(({ cursor, shown }) => shown && cursor > after)
      .map(({ cursor }) => cursor)
  }

  async step(): Promise<void> {
    const index = this.#choose(this.pending.length)
    const [run] = this.pending.splice(index, 1)
    run?.()
    await new Promise<void>((resolve) => setImmediate(resolve))
  }
  /**
   * Runs the pending actions until none are left.
   * @throws {Error} when actions are still pending after 5,000 steps.
   */
  async rest(drain: boolean): Promise<void> {
    for (let turns = 0; ; turns++) {
      if (drain) for (const client of this.clients) client.drain()
      await new Promise<void>((resolve) => setImmediate(resolve))
      if (this.pending.length === 0) return
      if (turns > 5000) throw new Error('does not come to rest')
      await this.step()
    }
  }
}

t.test(
  'under loss, repetition, delay and refusal, every client gets each event once, in order, and the end',
  async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.infiniteStream(fc.nat(1_000_000)),
        fc.array(fc.nat(99), { minLength: 10, maxLength: 120 }),
        fc.boolean(),
        fc.boolean(),
        async (numbers, actions, lossy, eager) => {
          const model = new Model((below) =>
            below <= 1 ? 0 : (numbers.next().value as number) % below,
          )
          model.stale = lossy
          model.eager = eager
          for (const action of actions) {
            if (action < 30) model.commit(false, lossy ? undefined : 1 + (action % 2))
            else if (action < 35 && model.last > 0) model.follower.notice(model.last)
            else if (action < 45)
              void model.join(action % 2 === 0 ? 0 : Math.max(0, model.last - (action % 7)))
            else if (action < 48 && lossy) model.follower.check()
            else if (action < 58) model.clients[action % Math.max(1, model.clients.length)]?.drain()
            else await model.step()
          }
          await model.rest(true)
          model.stale = false
          if (!lossy)
            for (const client of model.clients)
              if (client.got.length !== model.expected(client.after).length)
                throw new Error('a client waits although nothing was lost')
          model.commit(true, lossy ? undefined : 1)
          await model.rest(true)
          if (lossy) model.follower.check()
          await model.rest(true)
          for (const client of model.clients) {
            if (JSON.stringify(client.got) !== JSON.stringify(model.expected(client.after)))
              throw new Error(
                `client after ${client.after} got ${client.got} instead of ${model.expected(client.after)}`,
              )
            if (!client.ended) throw new Error('a client was left waiting')
          }
          if (model.follower.clients !== 0) throw new Error('a client was kept')
        },
      ),
      { numRuns: 400 },
    )
  },
)

const calm = () => new Model(() => 0)

t.test(
  'live entries for clients in step are passed on without a query, for any number of clients',
  async (t) => {
    const model = calm()
    for (let i = 0; i < 5; i++) {
      void model.join(0)
      await model.rest(false)
    }
    const before = model.questions
    model.commit(false, 1)
    model.commit(false, 1)
    await model.rest(false)
    t.equal(model.questions, before)
    for (const client of model.clients) t.same(client.got, model.expected(0))
  },
)

t.test('a gap is filled by one query for all clients', async (t) => {
  const model = calm()
  for (let i = 0; i < 4; i++) void model.join(0)
  await model.rest(false)
  const before = model.questions
  model.commit(false, 0)
  model.commit(false, 1)
  await model.rest(false)
  t.ok(model.questions - before <= 3, 'not one query per client')
  for (const client of model.clients) t.same(client.got, model.expected(0))
})

t.test('a lagging client catches up with longer pages', async (t) => {
  const model = calm()
  for (let i = 0; i < 60; i++) model.commit(false, 0)
  void model.join(0)
  const before = model.questions
  for (let i = 0; i < 60; i++) await model.rest(true)
  t.same(model.clients[0]?.got, model.expected(0))
  t.ok(
    (model.questions - before) * 5 < model.expected(0).length,
    `${model.questions - before} questions for ${model.expected(0).length} events`,
  )
})

t.test('a lagging client is not ended by a view that lacks the sequence', async (t) => {
  const gone = refuse('not_found')
  const page = (cursors: readonly number[], more: boolean): Page => ({
    items: cursors.map((cursor) => ({ cursor, frame: `${cursor}\n` })),
    more,
    last: 9,
    ended: false,
    oldest: 0,
  })
  const asked: (number | undefined)[] = []
  // After the first page, every query must require that the view has applied all entries up to the
  // position of the query. Otherwise, a view that does not have the sequence yet refuses the query.
  const follower = new Follower(
    async (after, fresh) => {
      asked.push(fresh)
      if (asked.length === 1) return page([1, 2], true)
      return fresh !== undefined && fresh < after
        ? gone
        : page([3, 4, 5, 6, 7, 8, 9].filter((cursor) => cursor > after).slice(0, 3), after < 6)
    },
    () => () => {},
  )
  let got = ''
  let ended = false
  const opening = await follower.open(0)
  if ('refused' in opening) return t.fail('refused')
  follower.join(
    {
      write: (piece) => {
        got += Buffer.from(piece).toString()
      },
      full: false,
      closed: false,
      onDrain() {},
      onClose() {},
      end() {
        ended = true
      },
    },
    0,
    opening,
  )
  for (let i = 0; i < 9; i++) await new Promise<void>((resolve) => setImmediate(resolve))
  t.same(got.trim().split('\n').map(Number), [1, 2, 3, 4, 5, 6, 7, 8, 9])
  t.same(asked, [undefined, 2, 5, 8, undefined])
  t.notOk(ended)
})

t.test(
  'while the view lags behind the journal, followers get its content, and finally all of it',
  async (t) => {
    // The view lags behind the announced entries until it has applied 40 of them. Until then, a
    // query for the latest state times out.
    let applied = 10
    const page = (after: number, late = false): Page => ({
      items: Array.from({ length: Math.max(0, applied - after) }, (_, i) => ({
        cursor: after + 1 + i,
        frame: `${after + 1 + i}\n`,
      })),
      more: false,
      last: applied,
      ended: false,
      oldest: 0,
      late,
    })
    const pauses: (() => void)[] = []
    const patient = () => new Promise<void>((over) => pauses.push(over))
    const follower = new Follower(
      async (after, fresh) => {
        const late = fresh === undefined || fresh > applied
        if (late) await patient()
        return page(after, late && (fresh ?? 40) > applied)
      },
      () => () => {},
    )
    const rest = async () => {
      for (let i = 0; i < 9; i++) await new Promise<void>((resolve) => setImmediate(resolve))
    }
    const join = async () => {
      const client = { got: '', ended: false }
      const opening = follower.open(0)
      await rest()
      for (const run of pauses.splice(0)) run()
      const opened = await opening
      if ('refused' in opened)
        throw new Error('who comes while the view is late is given what there is')
      follower.join(
        {
          write: (piece) => {
            client.got += Buffer.from(piece).toString()
          },
          full: false,
          closed: false,
          onDrain() {},
          onClose() {},
          end() {
            client.ended = true
          },
        },
        0,
        opened,
      )
      return client
    }
    const numbers = ({ got }: { got: string }) => got.trim().split('\n').map(Number)
    const upTo = (last: number) => Array.from({ length: last }, (_, i) => i + 1)
    const first = await join()
    await rest()
    follower.notice(40)
    let second: typeof first | undefined
    for (applied = 12; applied < 40; applied += 2) {
      if (applied === 20) second = await join()
      await rest()
      for (const run of pauses.splice(0)) run()
    }
    applied = 39
    await rest()
    t.ok(
      numbers(first).length > 30,
      `${numbers(first).length} items have come before the present was reached`,
    )
    t.ok(second && numbers(second).length > 30)
    applied = 40
    for (let i = 0; i < 4; i++) {
      for (const run of pauses.splice(0)) run()
      await rest()
    }
    t.same(numbers(first), upTo(40))
    t.same(second && numbers(second), upTo(40))
    t.notOk(first.ended)
  },
)

t.test(
  'a client that does not read receives no more than fits, and continues when it reads',
  async (t) => {
    const model = calm()
    void model.join(0)
    await model.rest(false)
    for (let i = 0; i < 30; i++) model.commit(false, 1)
    await model.rest(false)
    t.equal(model.clients[0]?.got.length, 5)
    for (let i = 0; i < 20; i++) await model.rest(true)
    t.same(model.clients[0]?.got, model.expected(0))
  },
)

t.test('a cursor that is too old gets a reset, then the stored events', async (t) => {
  const model = calm()
  for (let i = 0; i < 4; i++) model.commit(false, 1)
  model.oldest = model.entries[2]?.events[0]?.cursor ?? 0
  void model.join(1)
  await model.rest(true)
  const [client] = model.clients
  t.equal(client?.resets, 1)
  t.same(client?.got, model.expected(model.oldest - 1))
})

t.test('a cursor from the future does not affect other clients', async (t) => {
  const model = calm()
  model.commit(false, 1)
  void model.join(Number.MAX_SAFE_INTEGER)
  await model.rest(true)
  void model.join(0)
  await model.rest(true)
  model.commit(false, 1)
  await model.rest(true)
  t.same(model.clients[0]?.got, [])
  t.same(model.clients[1]?.got, model.expected(0))
})
