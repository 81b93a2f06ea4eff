/** The theme and other choices that belong to this browser, not to the account. */
import { effect, signal } from '@preact/signals'

/** `system` follows the setting of the operating system. */
export type Theme = 'system' | 'light' | 'dark'

/** Reads a value that an earlier visit stored; undefined if storage is not available. */
export function stored(key: string): string | undefined {
  try {
    return localStorage.getItem(key) ?? undefined
  } catch {
    return undefined
  }
}
/** Stores a value for later visits; undefined removes it. Does nothing without storage. */
export function store(key: string, value: string | undefined): void {
  try {
    if (value === undefined) localStorage.removeItem(key)
    else localStorage.setItem(key, value)
  } catch {
    // A browser without storage forgets the value, which is acceptable.
  }
}

const THEME = 'console.theme'
const asTheme = (value: string | undefined): Theme =>
  value === 'light' || value === 'dark' ? value : 'system'
/** The chosen theme. */
export const theme = signal<Theme>(asTheme(stored(THEME)))

/** Applies the theme to the page. Called once. */
export const applyTheme = (): void =>
  void effect(() => {
    store(THEME, theme.value === 'system' ? undefined : theme.value)
    if (theme.value === 'system') delete document.documentElement.dataset['theme']
    else document.documentElement.dataset['theme'] = theme.value
  })
