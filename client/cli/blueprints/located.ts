/**
 * Represents values read from files, with the place of each value, and faults with file, line and
 * column. Places are identified by paths such as `steps[0].config`, which the checks and the
 * service also use.
 */
import { Mistake } from '../mistake.ts'

/** A file, with the name that is shown in messages. */
export interface Source {
  readonly name: string
  /** Returns the line and the column of an offset, both counted from 1. */
  readonly position: (offset: number) => { readonly line: number; readonly column: number }
}
/** A place in a file: an offset in UTF-16 code units. */
export interface Place {
  readonly source: Source
  readonly offset: number
}
export interface Located {
  readonly value: unknown
  readonly place: Place
  /** Members of an object by name, each with the place of its name. */
  readonly members?: ReadonlyMap<string, Member>
  readonly items?: readonly Located[]
}
interface Member {
  readonly name: Place
  readonly located: Located
}
/** A fault of a file, which is reported to the user with its place. */
export interface Fault {
  readonly place: Place
  readonly message: string
}

/** Formats a place as `file:line:column`. */
export function placeText({ source, offset }: Place): string {
  const { line, column } = source.position(offset)
  return `${source.name}:${line}:${column}`
}
export const faultText = ({ place, message }: Fault): string => `${placeText(place)}: ${message}`

/**
 * Reports the faults of files. The message lists up to `MAX_SHOWN` faults, each in the form
 * `file:line:column: message`.
 */
export class FileFaults extends Mistake {
  readonly faults: readonly Fault[]
  constructor(faults: readonly Fault[]) {
    const lines = [...new Set(faults.map(faultText))]
    super([...lines.slice(0, MAX_SHOWN), ...more(lines.length - MAX_SHOWN)].join('\n'))
    this.faults = faults
  }
}
/** Maximum number of faults in one message. */
const MAX_SHOWN = 200
const more = (count: number): string[] => (count > 0 ? [`… and ${count} more`] : [])

const SEGMENT = /\.?([^.[\]"]+)|\[(\d+)\]|\[("(?:[^"\\]|\\.)*")\]/gy
/**
 * Splits a path such as `steps[0].config["a b"]` into names and indexes. Ignores everything after a
 * syntax error.
 */
export function segmentsOf(path: string): (string | number)[] {
  return [...path.matchAll(SEGMENT)].map(([, name, index, quoted]) =>
    index !== undefined
      ? Number(index)
      : quoted !== undefined
        ? (JSON.parse(quoted) as string)
        : (name ?? ''),
  )
}
/**
 * Returns the place of the member name or list item to which a path leads. If the path does not
 * exist, returns the place to which the longest existing part of the path leads.
 */
export function placeAt(root: Located, path: readonly (string | number)[]): Place {
  let place = root.place
  let at: Located | undefined = root
  for (const segment of path) {
    const member: Member | undefined =
      typeof segment === 'string' ? at?.members?.get(segment) : undefined
    const next: Located | undefined =
      typeof segment === 'number' ? at?.items?.[segment] : member?.located
    if (!next) return place
    place = member?.name ?? next.place
    at = next
  }
  return place
}

/** Returns a located object without the given members. */
export function withoutMembers(located: Located, names: readonly string[]): Located {
  const members = new Map([...(located.members ?? [])].filter(([name]) => !names.includes(name)))
  return {
    ...located,
    members,
    value: Object.fromEntries([...members].map(([name, member]) => [name, member.located.value])),
  }
}
