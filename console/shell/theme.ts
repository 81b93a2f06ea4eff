/** The theme and other choices that belong to this browser, not to the account. */
import { effect, signal } from '@preact/signals'

/** `system` follows the setting of the operating system. */
export type Theme = 'system' | 'light' | 'dark'

/** Reads a stored value. Returns undefined if the key has no value or storage is not available. */
export function stored(key: string): string | undefined {
  try {
    return localStorage.getItem(key) ?? undefined
  } catch {
    return undefined
  }
}
/** Stores a value for later visits. Undefined removes it. Does nothing without storage. */
export function store(key: string, value: string | undefined): void {
  try {
    if (value === undefined) localStorage.removeItem(key)
    else localStorage.setItem(key, value)
  } catch {
    // Without storage, the value is lost with the page, which is acceptable.
  }
}

const THEME = 'console.theme'
const asTheme = (value: string | undefined): Theme =>
  value === 'light' || value === 'dark' ? value : 'system'
/** The chosen theme. */
export const theme = signal<Theme>(asTheme(stored(THEME)))

/** Applies and stores the theme, now and whenever it changes. Called once at the start. */
export const applyTheme = (): void =>
  void effect(() => {
    store(THEME, theme.value === 'system' ? undefined : theme.value)
    if (theme.value === 'system') delete document.documentElement.dataset['theme']
    else document.documentElement.dataset['theme'] = theme.value
  })
