/**
 * Shares projects between rows, because creating the records of a project takes most of the time of
 * a row's test. A project is used by one row after another, as long as it contains every record to
 * which the next row refers, and nothing in it changes on its own.
 */
import { isDeepStrictEqual } from 'node:util'
import type { RowName } from '../../../protocol/api.ts'
import type { Row } from '../../../protocol/contract.ts'
import type { Service } from '../../support/service.ts'
import { furnish, type Place } from './rows.ts'
import { shownIn } from './shown.ts'

/** Rows that only add or edit records. All records can still be used afterwards. */
const KEEPS = new RegExp(
  '\\.(create(_\\w+)?|publish|publish_many|import(_organization)?|send|put|ping|insert|upsert\\w*|' +
    'update|replace\\w*|edit|mark_read|save|save_preferences|protect|assign_\\w+|set_binding|' +
    'add_member|link|nudge|query|search|signed_url|git_credentials)$|' +
    '^(session\\.attach|row\\.bulk\\w*)$',
)
/** Rows of loops, whose triggers can fire on their own and change the project. */
const FIRES = /^loop\./
/**
 * Rows that end a record immediately. All rows that need the record have the same tag. Rows for
 * keys of the organization are excluded, because two rows with different tags revoke these keys.
 */
const ENDS = new RegExp(
  '^(?!key\\.\\w+_organization)(key|token|assignment|saved_view|channel|toolkit|skill|memory|' +
    'action|organization_action|webhook|secret|repository_host|table|row|artifact)\\.(\\w+_)?' +
    '(delete|revoke|remove|forget|rotate|activate)(_\\w+)?$',
)
/**
 * The maximum number of rows that may accept requests in one project. More rows would fill its
 * lists.
 */
const USES = 6

type Shown = Awaited<ReturnType<typeof shownIn>>
export interface Shared {
  readonly place: Place
  /** The contents of the lists when they were last read. Only accepted requests may change them. */
  shown: Shown
  /** The rows whose requests were all refused since `shown` was read. */
  refused: RowName[]
  uses: number
  /** Whether a row is using the project, or failed while using it. */
  busy: boolean
  /** The tags of the rows that ended a record. */
  readonly spent: Set<string>
}

/**
 * Orders rows so that they need few projects: first those that keep all records, then the others,
 * one of each tag in turn.
 */
export function inTurn(rows: readonly (readonly [RowName, Row])[]): (readonly [RowName, Row])[] {
  const turns = new Map<string, number>()
  const turnOf = ([name, row]: readonly [RowName, Row]): number => {
    if (row.verb !== 'command' || KEEPS.test(name)) return 0
    const turn = (turns.get(row.shape.tag) ?? 0) + 1
    turns.set(row.shape.tag, turn)
    return turn
  }
  return rows
    .map((one) => ({ one, turn: turnOf(one) }))
    .sort((a, b) => a.turn - b.turn)
    .map(({ one }) => one)
}

/** Provides the project for each row in turn. Rows share a project for as long as it is usable. */
export class SharedPlaces {
  /** The number of projects that were created. */
  count = 0
  #current: Shared | undefined
  readonly #s: Service

  constructor(s: Service) {
    this.#s = s
  }
  /**
   * Returns the project of the next row.
   * @param changed receives the failures of `unchanged` for the project that is no longer used.
   */
  async next(row: Row, changed: (failure: string) => void): Promise<Shared> {
    const last = this.#current
    if (last && !last.busy && last.uses < USES && !last.spent.has(row.shape.tag)) {
      last.busy = true
      return last
    }
    await this.end(changed)
    this.count++
    const fresh = await furnish(this.#s)
    this.#current = {
      place: fresh,
      shown: await shownIn(this.#s, fresh),
      refused: [],
      uses: 0,
      busy: true,
      spent: new Set(),
    }
    return this.#current
  }
  /** If requests were refused since the lists were read, checks that the lists are unchanged. */
  async unchanged(changed: (failure: string) => void): Promise<void> {
    const current = this.#current
    if (!current || current.refused.length === 0) return
    const now = await shownIn(this.#s, current.place)
    for (const [list, records] of Object.entries(now))
      if (!isDeepStrictEqual(records, current.shown[list]))
        changed(
          `refused requests of ${current.refused.join(', ')} changed ${list}: ` +
            `${JSON.stringify(records)} was ${JSON.stringify(current.shown[list])}`,
        )
    current.shown = now
    current.refused = []
  }
  /**
   * Lets the next row use the project, or drops the project if it is no longer usable.
   * @param accepted the rows that accepted a request.
   */
  used(name: RowName, accepted: readonly (readonly [RowName, Row])[], shown?: Shown): void {
    const current = this.#current
    if (!current) return
    current.busy = false
    if (!shown) return void current.refused.push(name)
    current.shown = shown
    current.uses++
    for (const [other, { shape }] of accepted)
      if (ENDS.test(other)) current.spent.add(shape.tag)
      else if (!KEEPS.test(other) || FIRES.test(other)) this.#current = undefined
  }
  /** Checks that refused requests have not changed the last project. */
  async end(changed: (failure: string) => void): Promise<void> {
    if (!this.#current?.busy) await this.unchanged(changed)
    this.#current = undefined
  }
}
