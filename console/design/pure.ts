/** Components that are rendered again only after a change of their properties. */
import { Component } from 'preact'

const isSame = (a: unknown, b: unknown): boolean =>
  a === b ||
  (Array.isArray(a) &&
    Array.isArray(b) &&
    a.length === b.length &&
    a.every((item, index) => item === b[index]))

/**
 * A component that is rendered again only after a change of a property. Arrays are equal if their
 * items are. Use it instead of caching elements with `useMemo`: a cached element refers to the
 * elements that surrounded it when it was created, and these refer to other cached elements, so
 * nothing that was ever shown could be freed.
 */
export abstract class Pure<P extends object> extends Component<P> {
  override shouldComponentUpdate(next: P): boolean {
    const names = Object.keys({ ...this.props, ...next }) as (keyof P)[]
    return names.some((name) => !isSame(next[name], this.props[name]))
  }
}
