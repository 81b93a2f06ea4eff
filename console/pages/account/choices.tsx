/** The tabs with the preferences of this browser and with the keyboard shortcuts. */
import { type Column, DataTable } from '../../design/data-table.tsx'
import { SelectField } from '../../design/field.tsx'
import { routes } from '../../router/routes.ts'
import { commands } from '../../shell/shortcuts.ts'
import { type Theme, theme } from '../../shell/theme.ts'
import { chooseLanguage, chosenLanguage, languages } from '../../text/language.ts'
import { accountText as text } from './text.ts'

/** The tab with the theme, the language and the time zone. */
export const Preferences = () => (
  <div class="card">
    <div class="body stack narrow">
      <SelectField
        label={text.theme}
        hint={text.themeHint}
        choices={[
          { value: 'system', label: text.themeSystem },
          { value: 'light', label: text.themeLight },
          { value: 'dark', label: text.themeDark },
        ]}
        value={theme.value}
        onValue={(value) => {
          theme.value = value as Theme
        }}
      />
      <SelectField
        label={text.language}
        hint={text.languageHint}
        choices={[
          { value: '', label: text.languageBrowser },
          ...Object.entries(languages).map(([value, label]) => ({ value, label })),
        ]}
        value={chosenLanguage ?? ''}
        onValue={(value) => chooseLanguage(value === '' ? undefined : value)}
      />
      <dl class="facts">
        <dt>{text.zone}</dt>
        <dd>
          {Intl.DateTimeFormat().resolvedOptions().timeZone}{' '}
          <span class="soft">{text.zoneHint}</span>
        </dd>
      </dl>
    </div>
  </div>
)

interface Shortcut {
  readonly keys: string
  readonly label: string
}
const Keys = ({ keys }: { readonly keys: string }) => (
  <span class="row tight">
    {keys.split(' ').map((key, index) => (
      <kbd key={`${index} ${key}`}>{key}</kbd>
    ))}
  </span>
)
const columns: readonly Column<Shortcut>[] = [
  { name: text.keys, cell: ({ keys }) => <Keys keys={keys} /> },
  { name: text.command, cell: ({ label }) => label },
]
const general: readonly Shortcut[] = [
  { keys: 'Ctrl+K', label: text.palette },
  { keys: 'Escape', label: text.close },
  { keys: 'j k', label: text.move },
  { keys: 'Enter', label: text.openItem },
]

/** Lists the general shortcuts, those of registered commands and those of pages. */
export function Shortcuts() {
  const pages = routes.flatMap(({ entry }) =>
    entry?.keys === undefined ? [] : [{ keys: entry.keys, label: entry.label }],
  )
  const own = commands.value.flatMap(({ keys, label }) =>
    keys === undefined || label === '' || pages.some((page) => page.keys === keys)
      ? []
      : [{ keys, label }],
  )
  return (
    <div class="stack">
      <p class="soft">{text.shortcutsHint}</p>
      <h2>{text.toHeading}</h2>
      <DataTable
        label={text.toHeading}
        columns={columns}
        items={[...general, ...own]}
        keyOf={({ keys, label }) => `${keys} ${label}`}
      />
      <h2>{text.pages}</h2>
      <DataTable label={text.pages} columns={columns} items={pages} keyOf={({ keys }) => keys} />
    </div>
  )
}
