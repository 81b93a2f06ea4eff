/**
 * The command palette: a searchable list of pages, commands of the current page, and projects. It
 * also opens the record whose id is typed, and searches runs.
 */
import { signal } from '@preact/signals'
import { useId, useMemo, useRef, useState } from 'preact/hooks'
import { isolate } from '../../client/isolate.ts'
import { Icon, type IconName } from '../design/icons.tsx'
import { Dialog } from '../design/overlay.tsx'
import { fillPath } from '../router/match.ts'
import { pageOfId } from '../router/record-page.ts'
import { isOfProject } from '../router/route.ts'
import { go } from '../router/router.ts'
import { routes } from '../router/routes.ts'
import { rankOf } from './rank.ts'

import { mayOpen, project, projects } from './session.ts'
import { commands } from './shortcuts.ts'
import { shellText as text } from './text.ts'

/** Whether the palette is open. */
export const paletteOpen = signal(false)

interface Found {
  readonly id: string
  readonly label: string
  readonly hint: string
  readonly icon: IconName
  readonly keys?: string
  readonly run: () => void
}

/** Maximum number of listed results. */
const MAX_FOUND = 50

function all(): readonly Found[] {
  const current = project.value
  const pages = routes.flatMap((route): Found[] => {
    const { path, entry } = route
    if (!entry || (isOfProject(path) && current === '') || !mayOpen(route)) return []
    const href = fillPath(path, { project: current })
    const { label, group, icon, keys } = entry
    return [
      {
        id: href,
        label,
        hint: group,
        icon,
        ...(keys && { keys }),
        run: () => go(href, { chosen: true }),
      },
    ]
  })
  const own = commands.value.map(
    ({ id, label, icon = 'right', keys, run }): Found => ({
      id: `command ${id}`,
      label,
      hint: '',
      icon,
      ...(keys && { keys }),
      run,
    }),
  )
  const others = projects.value.map(
    ({ handle, name }): Found => ({
      id: `project ${handle}`,
      label: name,
      hint: text.projects,
      icon: 'projects',
      run: () => go(`/p/${encodeURIComponent(handle)}`, { chosen: true }),
    }),
  )
  const seen = new Set<string>()
  return [...own, ...pages, ...others].filter(
    ({ id, label }) => !seen.has(id) && seen.add(id) && label !== '',
  )
}

/** Returns the page of the record whose id was typed, or else the list of runs with that text. */
function recordsOf(typed: string): readonly Found[] {
  const wanted = typed.trim()
  const page = pageOfId(wanted) ?? '/p/:project/runs'
  const route = routes.find(({ path }) => path === page)
  if (wanted === '' || project.value === '' || !route || !mayOpen(route)) return []
  const isRecord = page.endsWith('/:id')
  const href = isRecord
    ? fillPath(page, { project: project.value, id: wanted })
    : `${fillPath(page, { project: project.value })}?${new URLSearchParams({ q: wanted })}`
  const label = isRecord ? text.openRecord(wanted) : text.findRuns(isolate(wanted))
  return [{ id: 'record', label, hint: '', icon: 'search', run: () => go(href, { chosen: true }) }]
}

/** Shows the palette while it is open. */
export function Palette() {
  return paletteOpen.value ? <Open /> : null
}

function Open() {
  const [typed, setTyped] = useState('')
  const [at, setAt] = useState(0)
  const id = useId()
  const list = useRef<HTMLDivElement>(null)
  const choices = all()
  const named = useMemo(
    () =>
      choices
        .flatMap((one) => {
          const rank = rankOf(typed, one.label, one.hint)
          return rank === undefined ? [] : [{ one, rank }]
        })
        .sort((a, b) => a.rank - b.rank)
        .slice(0, MAX_FOUND)
        .map(({ one }) => one),
    [typed, choices.length],
  )
  const found = [...named, ...recordsOf(typed)]
  const close = (): void => {
    paletteOpen.value = false
  }
  const choose = (one: Found | undefined): void => {
    if (!one) return
    close()
    one.run()
  }
  const move = (event: KeyboardEvent): void => {
    if (event.key === 'Enter') {
      event.preventDefault()
      choose(found[at])
      return
    }
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (step === undefined || found.length === 0) return
    event.preventDefault()
    const next = (at + step + found.length) % found.length
    setAt(next)
    list.current?.children[next]?.scrollIntoView({ block: 'nearest' })
  }
  return (
    <Dialog title={text.palette} onClose={close}>
      <input
        class="input"
        type="text"
        role="combobox"
        aria-label={text.search}
        aria-expanded="true"
        aria-controls={id}
        aria-activedescendant={found[at] && `${id}-${at}`}
        placeholder={text.search}
        value={typed}
        autoFocus
        onInput={({ currentTarget }) => {
          setTyped(currentTarget.value)
          setAt(0)
        }}
        onKeyDown={move}
      />
      <div id={id} ref={list} role="listbox" aria-label={text.palette} class="palette">
        {found.map((one, index) => (
          <div
            key={one.id}
            id={`${id}-${index}`}
            role="option"
            tabIndex={-1}
            aria-selected={index === at}
            class="menu-item"
            onClick={() => choose(one)}
          >
            <Icon name={one.icon} />
            <span class="grow clip user-text">{one.label}</span>
            <span class="soft small">{one.hint}</span>
            {one.keys && <kbd>{one.keys}</kbd>}
          </div>
        ))}
      </div>
      {found.length === 0 && <p class="soft">{text.noCommand}</p>}
    </Dialog>
  )
}
