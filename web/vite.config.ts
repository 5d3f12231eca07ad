import { cpSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import react from "@vitejs/plugin-react";
import tailwindcss from "@tailwindcss/vite";
import { defineConfig, type Plugin } from "vite";

const here = import.meta.dirname;
const page = path.resolve(here, "../app/api/static/page");

/** Put pdf.js's own fonts and character maps beside the page, so that no PDF needs a request elsewhere. */
function pdfAssets(): Plugin {
  const pdfjs = path.dirname(createRequire(import.meta.url).resolve("pdfjs-dist/package.json"));
  return {
    name: "documind-pdf-assets",
    apply: "build",
    closeBundle() {
      for (const folder of ["cmaps", "standard_fonts"]) {
        cpSync(path.join(pdfjs, folder), path.join(page, "pdfjs", folder), { recursive: true });
      }
    },
  };
}

const api = process.env["DOCUMIND_URL"] ?? "http://127.0.0.1:8001";

export default defineConfig({
  // Relative addresses: the page works behind any path prefix (ROOT_PATH).
  base: "./",
  plugins: [react(), tailwindcss(), pdfAssets()],
  resolve: { alias: { "@": path.resolve(here, "src") } },
  build: {
    outDir: page,
    emptyOutDir: true,
    target: "es2023",
    // Never inline assets as data: addresses; the content security policy lists 'self'.
    assetsInlineLimit: 0,
    chunkSizeWarningLimit: 900,
  },
  worker: { format: "es" },
  server: { port: 5173, proxy: { "/api": api, "/health": api, "/v1": api } },
});
