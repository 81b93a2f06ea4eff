/** Components that are re-rendered only if their props have changed. */
import { Component } from 'preact'

const isSame = (a: unknown, b: unknown): boolean =>
  a === b ||
  (Array.isArray(a) &&
    Array.isArray(b) &&
    a.length === b.length &&
    a.every((item, index) => item === b[index]))

/** Returns whether two sets of props differ. Arrays are equal if their items are. */
export function differ<P extends object>(next: P, before: P): boolean {
  const differs = (name: string): boolean => !isSame(next[name as keyof P], before[name as keyof P])
  return Object.keys(next).some(differs) || Object.keys(before).some(differs)
}

/**
 * A component that is re-rendered only if `differ` finds a difference in its props. Use it instead
 * of caching elements with `useMemo`. A cached element refers to the elements that surrounded it
 * when it was created, and these refer to other cached elements. The elements of all earlier
 * renders would therefore stay in memory.
 */
export abstract class Pure<P extends object> extends Component<P> {
  override shouldComponentUpdate(next: P): boolean {
    return differ(next, this.props)
  }
}
