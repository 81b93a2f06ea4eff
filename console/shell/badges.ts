/** Numbers beside navigation entries, such as the number of waiting questions. */
import { signal } from '@preact/signals'

/** Numbers by the pattern of the page, such as `/p/:project/inbox`. 0 is not shown. */
export const badges = signal<Readonly<Record<string, number>>>({})

/** Sets the number beside an entry of the navigation. */
export function setBadge(pattern: string, count: number): void {
  badges.value = { ...badges.peek(), [pattern]: count }
}
