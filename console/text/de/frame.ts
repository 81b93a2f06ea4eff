/** German texts of the frame and of the components that pages share. */

import { isolate } from '../../../client/isolate.ts'
import type { apiText } from '../../api/text.ts'
import type { chartText } from '../../chart/text.ts'
import type { designText } from '../../design/text.ts'
import type { editorText } from '../../editor/text.ts'
import type { formText } from '../../form/text.ts'
import type { graphText } from '../../graph/text.ts'
import type { peopleText } from '../../people/text.ts'
import type { previewText } from '../../preview/text.ts'
import type { shellText } from '../../shell/text.ts'
import type { viewsText } from '../../views/text.ts'
import { plural } from '../plural.ts'

export const api: typeof apiText = {
  unreachable: 'Der Dienst antwortet nicht.',
  unknown:
    'Der Dienst hat nicht geantwortet. Deshalb ist nicht bekannt, ob dies gespeichert wurde. Der ' +
    'aktuelle Stand wird geladen: Prüfen Sie ihn, und versuchen Sie es nötigenfalls noch einmal.',
  changedMeanwhile: (fields) =>
    `Jemand anderes hat dies während Ihrer Bearbeitung geändert: ${fields}. Speichern Sie noch ` +
    'einmal, um die Änderung zu ersetzen, oder schließen Sie das Formular, um sie zu behalten.',
  answered: (status) => `Der Dienst hat mit ${status} geantwortet.`,
}

export const chart: typeof chartText = {
  asTable: 'Als Tabelle zeigen',
  time: 'Zeit',
}

export const design: typeof designText = {
  close: 'Schließen',
  leave: 'Änderungen auf dieser Seite sind nicht gespeichert. Ohne Speichern verlassen?',
  cancel: 'Abbrechen',
  copy: 'Kopieren',
  copied: 'Kopiert.',
  copyAs: 'Kopieren als',
  copyId: 'Id kopieren',
  curl: 'curl',
  cli: 'Befehlszeile',
  typescript: 'TypeScript',
  retry: 'Noch einmal versuchen',
  loading: 'Wird geladen …',
  more: 'Mehr laden',
  moreActions: 'Weitere Aktionen',
  needs: (permission) => `Dafür ist das Recht ${permission} nötig.`,
  request: (id) => `Anfrage ${id}`,
  failed: 'Das konnte nicht geladen werden.',
  pageFailed: 'Diese Seite hat einen Fehler.',
  pageFailedHint: 'Der Fehler liegt in der Konsole. Laden Sie die Seite neu.',
  reload: 'Neu laden',
  items: (count) => plural(count, 'Eintrag', 'Einträge'),
  members: (count) => plural(count, 'Feld', 'Felder'),
  showAll: 'Alle zeigen',
  deepValue: 'Den Rest zeigen',
  about: (name, content) => `${name}: ${content}`,
  detailed: (name, detail) => `${name} (${detail})`,
}

export const editor: typeof editorText = {
  leave: 'Escape und dann Tab verlässt den Editor. Strg-Leertaste schlägt vor, Strg-F sucht.',
  faults: (count) => plural(count, 'Fehler', 'Fehler'),
  line: (line) => `Zeile ${line}`,
  moreFaults: (count) => `und ${plural(count, 'weiterer Fehler', 'weitere Fehler')}`,
  find: 'Suchen',
  previous: 'Vorheriger Treffer',
  next: 'Nächster Treffer',
  close: 'Suche schließen',
  matches: (at, count) => (count === 0 ? 'Kein Treffer' : `${at} von ${count}`),
  language: 'Format',
  json: 'JSON',
  yaml: 'YAML',
  notConverted: 'Der Text hat einen Fehler und kann deshalb nicht umgewandelt werden.',
  before: 'Vorher',
  after: 'Nachher',
  same: 'Es gibt keinen Unterschied.',
  unchanged: (count) => plural(count, 'unveränderte Zeile', 'unveränderte Zeilen'),
}

export const form: typeof formText = {
  form: 'Formular',
  json: 'JSON',
  editAs: 'Bearbeiten als',
  notSet: 'Nicht gesetzt',
  yes: 'Ja',
  no: 'Nein',
  item: (index) => `Eintrag ${index}`,
  addItem: 'Eintrag hinzufügen',
  removeItem: (index) => `Eintrag ${index} entfernen`,
  notJson: 'Das ist kein gültiges JSON.',
  notShown: 'Das Formular kann diesen Wert nicht ganz zeigen. Arbeiten Sie in JSON weiter.',
  changedMeanwhile: (field) => `${field} wurde geändert, während Sie es bearbeitet haben.`,
  storedValue: (value) => `Jetzt gespeichert: ${value}`,
  noValue: 'kein Wert',
  keepMine: 'Meine Änderungen behalten',
  takeTheirs: 'Gespeicherte Werte übernehmen',
  save: 'Speichern',
  needed: (label) => `${label} *`,
}

export const graph: typeof graphText = {
  label: 'Schritte des Workflows',
  help:
    'Ziehen verschiebt, das Mausrad vergrößert. Mit der Tastatur: Pfeiltasten verschieben, Plus ' +
    'und Minus vergrößern und verkleinern, 0 zeigt alles.',
  zoomIn: 'Vergrößern',
  zoomOut: 'Verkleinern',
  fit: 'Alles zeigen',
  cleanup: 'Aufräumen',
  items: (label) => `Für jeden Eintrag von ${label}`,
  branches: (label) => `Zweige von ${label}`,
  condition: (condition) => `Nur wenn ${condition}`,
  then: (names) => `Dann ${names}.`,
  last: 'Hier ist das Ende.',
  failed: 'Der Graph konnte nicht gezeichnet werden.',
}

export const people: typeof peopleText = {
  service: 'Dienstkonto',
  role: (name) => `Alle mit der Rolle ${isolate(name)}`,
}

export const preview: typeof previewText = {
  preview: 'Vorschau',
  content: (name) => `Inhalt von ${name}`,
  shown: 'Darstellung',
  rendered: 'Vorschau',
  raw: 'Text',
  cut: (shown, total) =>
    `Die ersten ${shown} von ${total} werden gezeigt. Laden Sie die Datei herunter, um den Rest ` +
    'zu sehen.',
  linesCut: (count) => `${plural(count, 'Zeile', 'Zeilen')} vom Anfang werden gezeigt.`,
  tooLarge: (size) => `Die Datei hat ${size}. Das ist zu viel für eine Vorschau.`,
  none: 'Für diesen Dateityp gibt es keine Vorschau.',
  noneHint: 'Laden Sie die Datei herunter, um sie mit einem anderen Programm zu öffnen.',
  noPdf: 'Dieser Browser zeigt keine PDF-Dateien. Laden Sie die Datei herunter, um sie zu öffnen.',
  empty: 'Die Datei ist leer.',
  notJson: 'Der Text ist kein gültiges JSON und wird deshalb unverändert gezeigt.',
  recordsCut: (count) => `${plural(count, 'Datensatz', 'Datensätze')} vom Anfang werden gezeigt.`,
  longMarkdown:
    'Der Text ist zu lang, um als Markdown gezeigt zu werden. Er wird unverändert gezeigt.',
  frameHint: 'Ohne Skripte und ohne Inhalte von anderen Adressen gezeigt.',
}

export const shell: typeof shellText = {
  skip: 'Zum Inhalt springen',
  navigation: 'Navigation',
  breadcrumb: 'Weg zu dieser Seite',
  openNavigation: 'Navigation öffnen',
  search: 'Suchen oder Befehl ausführen',
  palette: 'Befehle',
  noCommand: 'Nichts passt.',
  openRecord: (id) => `${id} öffnen`,
  findRuns: (typed) => `Die Läufe nach „${typed}“ durchsuchen`,
  nextRow: 'Nächster in der Liste',
  previousRow: 'Vorheriger in der Liste',
  projects: 'Projekte',
  chooseProject: 'Projekt wählen',
  noProjects: 'Sie haben noch kein Projekt.',
  noProjectsHint: 'Bitten Sie einen Administrator der Organisation, Sie in eines aufzunehmen.',
  account: 'Konto',
  signOut: 'Abmelden',
  apiReference: 'API-Referenz',
  theme: 'Design',
  themeSystem: 'Design des Systems',
  themeLight: 'Helles Design',
  themeDark: 'Dunkles Design',
  notFound: 'Diese Seite gibt es nicht.',
  notFoundHint: 'Vielleicht ist die Adresse unvollständig.',
  toHome: 'Zur Startseite',
  noSuchProject: 'Dieses Projekt gibt es nicht.',
  noSuchProjectHint: 'Es wurde gelöscht, oder Sie haben keinen Zugriff mehr darauf.',
  notAllowed: 'Sie dürfen diese Seite nicht sehen.',
  notAllowedHint: (permission) =>
    `Dafür ist das Recht ${permission} nötig. Ein Administrator des Projekts kann es erteilen.`,
  notAllowedOrganization: (permission) =>
    `Dafür ist das Recht ${permission} in der Organisation nötig.`,
  connecting: 'Verbindung wird aufgebaut …',
  waiting: 'Verbindung verloren. Neuer Versuch …',
  updated:
    'Der Dienst wurde aktualisiert. Laden Sie die Seite neu. Ihre Entwürfe bleiben erhalten.',
  reload: 'Neu laden',
  groupWork: 'Arbeiten',
  groupBuild: 'Bauen',
  groupData: 'Daten',
  groupOperate: 'Betreiben',
  groupOrganization: 'Organisation',
  home: 'Start',
  runs: 'Läufe',
  inbox: 'Eingang',
  sessions: 'Sitzungen',
  channels: 'Kanäle',
  workflows: 'Workflows',
  loops: 'Loops',
  agents: 'Agenten',
  toolkits: 'Toolkits',
  skills: 'Skills',
  tables: 'Tabellen',
  artifacts: 'Artefakte',
  environments: 'Umgebungen',
  workers: 'Worker und Warteschlangen',
  webhooks: 'Webhooks',
  blueprints: 'Blueprints',
  people: 'Personen und Zugang',
  secrets: 'Geheimnisse',
  audit: 'Protokoll',
  settings: 'Einstellungen',
  actions: 'Aktionen',
  events: 'Ereignisse',
  organizationProjects: 'Projekte',
  organizationKeys: 'API-Schlüssel',
  organizationAudit: 'Protokoll',
  resolver: 'Definition-Resolver',
  cluster: 'Knoten und Shards',
}

export const views: typeof viewsText = {
  views: 'Ansichten',
  save: 'Diese Ansicht speichern',
  manage: 'Ansichten verwalten',
  viewName: 'Name',
  shared: 'Mit allen im Projekt geteilt',
  sharedHint: 'Zum Teilen ist das Recht project.edit nötig.',
  saved: 'Die Ansicht wurde gespeichert.',
  deleted: 'Die Ansicht wurde gelöscht.',
  rename: 'Umbenennen',
  renameView: (name) => `${name} umbenennen`,
  replace: 'Die aktuellen Filter darin speichern',
  share: 'Teilen',
  unshare: 'Nicht mehr teilen',
  delete: 'Löschen',
  deleteView: (name) => `Die Ansicht ${name} löschen?`,
  deleteShared: 'Alle im Projekt verlieren sie.',
  noViews:
    'Sie haben noch keine gespeicherte Ansicht. Setzen Sie Filter, und speichern Sie sie unter ' +
    'einem Namen.',
  sharedBadge: 'geteilt',
}
